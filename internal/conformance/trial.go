// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// Trial is one case's run on a subject. It hands out names that are the case's own
// and remembers what was made, for cleaning up.
type Trial struct {
	*Subject
	Case string
	// Backend is the subject's, shared by all cases of a run, its catalog too.
	Backend backends.Backend

	mu     sync.Mutex
	claims int

	// What was made, by kind.
	machines, volumes, shares, snapshots, shareSnapshots track
}

// track is what a case made of one kind.
type track struct {
	mu    sync.Mutex
	marks []backends.Marks // what was to be made with
	ids   []string         // what calls returned
}

// making remembers marks before something is made with them: what carries their key
// is cleaned up, whether or not the case comes to know it.
func (t *track) making(marks backends.Marks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, marks)
}

// made remembers what a call returned.
func (t *track) made(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id != "" && !slices.Contains(t.ids, id) {
		t.ids = append(t.ids, id)
	}
}

// kept is what was remembered.
func (t *track) kept() (marks []backends.Marks, ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.marks), slices.Clone(t.ids)
}

// Account opens the account as another process would: with the same client and
// nothing remembered.
func (t *Trial) Account() (*reconcile.Account, error) { return t.accountOf(t.Backend) }

// accountOf is Account with another backend, such as one that hides an ability.
func (t *Trial) accountOf(b backends.Backend) (*reconcile.Account, error) {
	definition := *t.Subject.Account.Definition()
	definition.Create = func(backends.Values, backends.Environment) (backends.Backend, error) { return b, nil }
	registry, err := backends.NewRegistry(&definition)
	if err != nil {
		return nil, err
	}
	return reconcile.NewAccounts(registry, t.Environment).Open(t.Subject.Account)
}

// slug is the case's name as a part of names in the cloud.
func (t *Trial) slug() string { return slug(t.Case) }

func slug(caseName string) string { return strings.ReplaceAll(caseName, "/", "-") }

// Pool is one of the case's own pools; nothing is made by naming it.
func (t *Trial) Pool(n int) reference.Reference { return pool(t.Subject, t.Case, n) }

func pool(s *Subject, caseName string, n int) reference.Reference {
	return s.Account.NewPool(s.Prefix+"-"+slug(caseName)+"-"+strconv.Itoa(n), false, reference.Limits{})
}

// otherAccount is the id of an account that nothing is made in.
func (t *Trial) otherAccount() string {
	return reference.AccountID(t.Subject.Account.Tenant, t.Subject.Account.Cloud, t.Prefix+"-no-such-account")
}

// poolsPerCase bounds the pools of a case.
const poolsPerCase = 2

// Wish is the case's nth machine in its first pool, with a claim of its own.
func (t *Trial) Wish(n int) reconcile.Wish { return t.WishIn(t.Pool(0), n) }

// WishIn is Wish in another of the case's pools.
func (t *Trial) WishIn(pool reference.Reference, n int) reconcile.Wish {
	name := t.Prefix + "-" + t.slug() + "-" + strconv.Itoa(n)
	key := reference.InstanceID(pool.PoolID(), name)
	spec := backends.MachineSpec{
		Name: name, Offer: t.Offer, Image: t.Image, Region: t.region(), Start: true,
		Options: backends.WithDefaults(t.Subject.Account.Definition().Manifest.Machine, t.Options),
	}
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountID(), Pool: pool.PoolID(), Claim: t.Claim(),
		Digest: backends.Digest(key, map[backends.DigestField]string{
			backends.DigestOffer: spec.Offer, backends.DigestImage: spec.Image, backends.DigestRegion: spec.Region,
		}),
	}
	return reconcile.Wish{Pool: pool, Spec: spec}
}

// Claim is a fresh claim.
func (t *Trial) Claim() string {
	t.mu.Lock()
	n := t.claims
	t.claims++
	t.mu.Unlock()
	if t.Subject.Claim != nil {
		return t.Subject.Claim(t.Case, n)
	}
	return reconcile.NewClaim()
}

// FixedClaims are claims that are the same in every run with the same prefix, for
// recordings and their replays. A live run uses random ones instead.
func FixedClaims(prefix string) func(caseName string, n int) string {
	return func(caseName string, n int) string {
		sum := sha256.Sum256([]byte(strings.Join([]string{prefix, caseName, strconv.Itoa(n)}, "\x00")))
		return hex.EncodeToString(sum[:])[:26]
	}
}

// Create grants a wish as a process of its own does, and remembers the machine.
// Machines in an error's company are ours too: see [reconcile.Created].
func (t *Trial) Create(ctx context.Context, w reconcile.Wish) (backends.Machine, error) {
	account, err := t.Account()
	if err != nil {
		return backends.Machine{}, err
	}
	return t.createIn(ctx, account, w)
}

func (t *Trial) createIn(ctx context.Context, account *reconcile.Account, w reconcile.Wish) (backends.Machine, error) {
	t.machines.making(w.Spec.Marks)
	created, err := account.Create(ctx, w)
	t.machines.made(created.Machine.ID)
	if err != nil {
		return created.Machine, fmt.Errorf("creating %s: %w", w.Spec.Name, err)
	}
	return created.Machine, nil
}

// Make makes a machine with the backend's one call, as a process that is killed
// right after it, and remembers it.
func (t *Trial) Make(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	t.machines.making(spec.Marks)
	m, err := t.Backend.MakeMachine(ctx, spec)
	if err == nil {
		t.machines.made(m.ID)
	}
	return m, err
}

// Update changes a machine as a process of its own does.
func (t *Trial) Update(ctx context.Context, c reconcile.Change) (backends.Machine, error) {
	account, err := t.Account()
	if err != nil {
		return backends.Machine{}, err
	}
	updated, err := account.Update(ctx, c)
	return updated.Machine, err
}

// Delete deletes a machine as a process of its own does; see
// [reconcile.Account.Delete].
func (t *Trial) Delete(ctx context.Context, o reconcile.Owned) (left bool, err error) {
	account, err := t.Account()
	if err != nil {
		return false, err
	}
	return account.Delete(ctx, o)
}

// owned is what a state knows of a wish's machine.
func owned(w reconcile.Wish, m backends.Machine) reconcile.Owned {
	return reconcile.Owned{Pool: w.Spec.Marks.Pool, ID: m.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim, Name: w.Spec.Name}
}

// quiet is an environment whose log is set.
func quiet(e backends.Environment) backends.Environment {
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	return e
}
