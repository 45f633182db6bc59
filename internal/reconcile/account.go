// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"cmp"
	"context"
	"sync"
	"time"

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
	// machines serialises what changes one machine.
	machines keyed
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
		reader:     newReader(backend, backends.Scale(cmp.Or(definition.ListLag, defaultListLag))),
		shared:     &a.shared,
	}
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

	reader *reader
	shared *shared
}

// lockMachine serialises what changes one machine.
func (a *Account) lockMachine(ctx context.Context, id string) (unlock func(), err error) {
	return a.shared.machines.lock(ctx, a.Definition.ID+"/"+id)
}

// Objects are the managed machines of an account or pool, as a list that begins
// now shows them, the oldest first; those being deleted are left out. A cloud
// that can't list has none to show.
func (a *Account) Objects(ctx context.Context, filter backends.Filter) ([]backends.Machine, error) {
	if a.reader.lister == nil {
		return nil, nil
	}
	v, err := a.reader.list(ctx, filter, time.Now())
	if err != nil {
		return nil, err
	}
	var out []backends.Machine
	for _, m := range v.sorted() {
		if m.State != backends.StateDeleting && m.State != backends.StateDeleted {
			out = append(out, m)
		}
	}
	return out, nil
}

// Find is the machine of a pool that carries a key, as a recent list shows it; nil
// when there is none.
func (a *Account) Find(ctx context.Context, pool, key string) (*backends.Machine, error) {
	found, err := a.reader.byKey(ctx, backends.Filter{Pool: pool}, key, time.Now().Add(-refreshAge))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Read is a machine of a pool as a recent list shows it, for a refresh.
// NOT_FOUND when it is gone.
func (a *Account) Read(ctx context.Context, pool, id string) (backends.Machine, error) {
	m, _, err := a.reader.get(ctx, backends.Filter{Pool: pool}, id, time.Now().Add(-refreshAge))
	if err == nil && m.State == backends.StateDeleted {
		return m, gone(id)
	}
	return m, err
}
