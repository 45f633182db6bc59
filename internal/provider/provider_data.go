// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// providerData is what a configured provider hands to its resources and data
// sources.
type providerData struct {
	Registry *backends.Registry
	Accounts *reconcile.Accounts
	Secrets  backends.Secrets
	// TenantID is the tenant of accounts that name none; with TenantKnown false the
	// plan doesn't know it yet.
	TenantID    string
	TenantKnown bool

	mu   sync.Mutex
	said map[string]bool
	// adopt tells of the pools that this process has met, by their ids, whether their
	// objects may be taken over; declared those that told it themselves.
	adopt, declared map[string]bool

	// volumes are what is planned for volumes and their attachments.
	volumes volumeNotes
}

// once tells whether this is the first time that it is asked about key: for
// warnings that are given once per account, not once per object.
func (d *providerData) once(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.said[key] {
		return false
	}
	if d.said == nil {
		d.said = map[string]bool{}
	}
	d.said[key] = true
	return true
}

// openAccount opens the account that an account's uri names. It makes no call
// and resolves no secret.
func (d *providerData) openAccount(uri string) (reference.Reference, *reconcile.Account, error) {
	return d.open(reference.KindAccount, uri)
}

// openPool opens the account of the pool that a pool's uri names. It makes no
// call and resolves no secret.
func (d *providerData) openPool(uri string) (reference.Reference, *reconcile.Account, error) {
	ref, account, err := d.open(reference.KindPool, uri)
	if err == nil {
		d.meetPool(ref, false)
	}
	return ref, account, err
}

// meetPool remembers whether a pool has adopt = true. What the pool's own resource
// declares counts more than the uri in an object that refers to it, which may be an
// older one.
func (d *providerData) meetPool(pool reference.Reference, declares bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.adopt == nil {
		d.adopt, d.declared = map[string]bool{}, map[string]bool{}
	}
	id := pool.PoolID()
	if declares || !d.declared[id] {
		d.adopt[id] = pool.Adopt
	}
	d.declared[id] = d.declared[id] || declares
}

// adopting tells whether a pool has adopt = true, for who has only the uri of
// something in the pool, which holds no keys of it (DESIGN.md §4): a snapshot. A
// state that was lost makes the pool, or the volume, in the same run, so it is met
// first; for one that wasn't met the answer is no, and importing is the way.
func (d *providerData) adopting(pool reference.Reference) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopt[pool.PoolID()]
}

// open opens the account of the object that a uri of some kind names.
func (d *providerData) open(kind reference.Kind, uri string) (reference.Reference, *reconcile.Account, error) {
	ref, err := reference.ParseKind(d.Registry, kind, uri)
	if err != nil {
		return reference.Reference{}, nil, err
	}
	account, err := d.Accounts.Open(ref)
	return ref, account, err
}

// resolve finds every secret that a reference's account needs, so that one that
// can't be found is known before the first call. The error is of all of them.
func (d *providerData) resolve(ctx context.Context, ref reference.Reference) error {
	var failures []error
	for _, secret := range secretReferences(ref.Config) {
		if _, err := d.Secrets.Resolve(ctx, secret); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// unreadable tells whether an error is one of credentials: a reference that can't
// be resolved, or one whose value the cloud refuses with 401. Refreshes then keep
// what is recorded, and plans of accounts, pools and instances go on unchecked,
// with a warning, so that the plan that mends the credentials can run (DESIGN.md
// §4). At apply it is an error, and so it is in a data source, which has nothing
// else to give. An API that can't be reached is an error everywhere.
func unreadable(err error) bool {
	return backends.HasReason(err, backends.ReasonSecret) || backends.HasReason(err, backends.ReasonCredentials)
}

// warnUnreadable warns, once per account, that its objects can't be refreshed.
func (d *providerData) warnUnreadable(diags *diag.Diagnostics, account *reconcile.Account, err error) {
	if d.once("unreadable " + account.URI) {
		warn(diags, err, "The account can't be read, so its objects keep their recorded state.",
			"Account: "+account.URI+". What differs in the cloud doesn't show until its credentials work again.")
	}
}

// warnUnchecked warns, once per account, that a plan isn't checked against the
// cloud.
func (d *providerData) warnUnchecked(diags *diag.Diagnostics, account string, err error) {
	if d.once("unchecked " + account) {
		warn(diags, err, "The plan is not checked against the cloud.",
			"Account: "+account+". An apply fails before its first call unless the credentials work by then.")
	}
}
