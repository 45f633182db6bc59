// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"log/slog"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Accounts opens accounts by their references and keeps them, one per canonical
// account uri, so that all resources of an account share its client, reader and
// catalog. One Accounts belongs to one configured provider.
type Accounts struct {
	registry    *backends.Registry
	environment backends.Environment

	mu   sync.Mutex
	open map[string]*Account

	shared shared
}

// shared is what accounts have in common: an account whose configuration changed
// is opened anew, and what happens to one object must still happen in order.
type shared struct {
	// booked and planned hold what is being created, and what a plan would create.
	booked, planned ledger
	// keys serialises what happens to one key: a create waits for a delete of the
	// same name.
	keys keyed
	// objects serialises what changes one object.
	objects keyed
	// claims are those that this process has written or found in its state: who holds
	// one is in this configuration, and nothing of it is adopted from under it.
	claims sync.Map
}

// NewAccounts makes an empty set of accounts.
func NewAccounts(registry *backends.Registry, environment backends.Environment) *Accounts {
	return &Accounts{registry: registry, environment: environment, open: map[string]*Account{}}
}

// Open is the account that a reference belongs to. It makes no call. A failed
// build is not kept.
func (a *Accounts) Open(ref reference.Reference) (*Account, error) {
	key := ref.AccountKey()
	a.mu.Lock()
	defer a.mu.Unlock()
	if acc, ok := a.open[key]; ok {
		return acc, nil
	}
	definition, ok := a.registry.Lookup(ref.Cloud)
	if !ok {
		return nil, backends.Errorf(backends.InvalidInput, "There is no cloud %q.", ref.Cloud)
	}
	config := backends.WithDefaults(definition.Manifest.Account, ref.Config)
	backend, err := definition.Create(config, a.environment)
	if err != nil {
		return nil, err
	}
	acc := &Account{
		Definition: definition,
		Backend:    backend,
		Region:     definition.Region(config),
		URI:        key,
		id:         ref.AccountID(),
		log:        cmp.Or(a.environment.Log, slog.New(slog.DiscardHandler)),
		shared:     &a.shared,
	}
	acc.reach(lags{list: backends.Scale(cmp.Or(definition.ListLag, defaultListLag))})
	a.open[key] = acc
	return acc, nil
}

// Account is one opened account.
type Account struct {
	Definition *backends.Definition
	Backend    backends.Backend
	// Region is where machines are made that name none.
	Region string
	// URI is the canonical account uri, without anything secret.
	URI string

	id     string
	log    *slog.Logger
	shared *shared

	machines *kind[backends.Machine]
	// The kinds below are nil where the cloud has no such objects.
	volumes, shares           *kind[backends.Volume]
	snapshots, shareSnapshots *kind[backends.Snapshot]
}

// reach sets up the kinds of objects that the cloud has.
func (a *Account) reach(lag lags) {
	a.machines = machineKind(a, lag)
	if b, ok := a.Backend.(backends.Volumer); ok {
		a.volumes = volumeKind(a, b.Volumes(), lag)
	}
	if b, ok := a.Backend.(backends.SharedVolumer); ok {
		a.shares = volumeKind(a, b.SharedVolumes(), lag)
		a.shares.optional = true
	}
	if b, ok := a.Backend.(backends.Snapshotter); ok {
		a.snapshots = snapshotKind(a, b.Snapshots(), lag)
	}
	if b, ok := a.Backend.(backends.SharedSnapshotter); ok {
		a.shareSnapshots = snapshotKind(a, b.SharedSnapshots(), lag)
		a.shareSnapshots.optional = true
	}
}
