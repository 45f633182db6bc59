// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// dim is a cloud that makes machines slowly, without saying whose they are before they
// are made, and whose ids are reused.
type dim struct {
	*cloud
	makeErr  error         // of every make, beside the machine
	takes    time.Duration // from made to saying whose it is
	dark     bool          // no machine says whose it is
	stranger bool          // all machines are someone else's
	swept    []string
}

func (d *dim) IDsAreReused() {}

func (d *dim) SweepMachine(_ context.Context, key string) error {
	d.swept = append(d.swept, key)
	return nil
}

func (d *dim) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	m, err := d.cloud.MakeMachine(ctx, spec)
	if err != nil {
		return m, err
	}
	return m, d.makeErr
}

func (d *dim) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	m, err := d.cloud.GetMachine(ctx, id)
	switch making := time.Since(m.Created) < d.takes; {
	case err != nil:
		return m, err
	case d.stranger:
		return backends.Machine{ID: id, Name: "theirs", State: backends.StateRunning}, nil
	case d.dark:
		return backends.Machine{ID: id, State: backends.StateUnknown, Partial: true, Message: "The node is down."}, nil
	case making:
		return backends.Machine{ID: id, State: backends.StatePending, Partial: true, Message: "It is being made."}, nil
	}
	return m, nil
}

func (d *dim) ListMachines(context.Context, backends.Filter) (backends.Listing[backends.Machine], error) {
	return backends.Whole[backends.Machine](nil), nil // by their ids alone
}

func (d *dim) account(t *testing.T) (*Account, reference.Reference) {
	t.Helper()
	definition := d.definition()
	definition.Create = func(backends.Values, backends.Environment) (backends.Backend, error) { return d, nil }
	registry, err := backends.NewRegistry(definition)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := reference.Parse(registry, "test-cloud://root/main/web")
	if err != nil {
		t.Fatal(err)
	}
	account, err := NewAccounts(registry, backends.Environment{}).Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	return account, pool
}

// TestBegunMachineIsRecorded: what a make returns beside an error is there for the
// state, whatever the error is, and is made once.
func TestBegunMachineIsRecorded(t *testing.T) {
	for name, failure := range map[string]error{
		"interrupted": context.Canceled, "timed out": context.DeadlineExceeded, "ambiguous": lost,
		"failed": backends.Errorf(backends.ProviderError, "The task takes longer."),
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &dim{cloud: newCloud(), makeErr: failure}
			account, pool := d.account(t)
			w := wish(pool, "web-0")
			created, err := account.Create(t.Context(), w)
			if !errors.Is(err, failure) || created.Machine.ID != "1" || created.Machine.Marks.Claim != w.Spec.Marks.Claim || d.called("make") != 1 {
				t.Errorf("%s: %+v, %v, %d makes", name, created, err, d.called("make"))
			}
			if created.Adopted || created.AsWanted {
				t.Errorf("%s: %+v", name, created)
			}
		})
	}
}

// begun is a machine whose creation was interrupted.
func begun(t *testing.T, d *dim) (*Account, Wish, Owned) {
	t.Helper()
	account, pool := d.account(t)
	w := wish(pool, "web-0")
	d.makeErr = context.Canceled
	created, err := account.Create(t.Context(), w)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	d.makeErr = nil
	next, _ := d.account(t) // another process
	return next, w, Owned{Pool: w.Spec.Marks.Pool, ID: created.Machine.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim, Name: "web-0"}
}

// TestBegunMachine is updated and deleted by the next run, which waits until it is
// known whose it is; where it is a stranger's, or can't be known, it is left alone.
func TestBegunMachine(t *testing.T) {
	for name, test := range map[string]struct {
		then   func(*dim)
		update backends.Code // "" for none
		remove backends.Code
		left   int // machines after the deletion
		swept  bool
	}{
		"being made":       {then: func(d *dim) { d.takes = 30 * time.Second }},
		"a stranger's":     {then: func(d *dim) { d.stranger = true }, update: backends.NotFound, left: 1, swept: true},
		"its node is down": {then: func(d *dim) { d.dark = true }, update: backends.ProviderError, remove: backends.ProviderError, left: 1},
		"gone": {then: func(d *dim) {
			d.mu.Lock()
			defer d.mu.Unlock()
			clear(d.machines)
		}, update: backends.NotFound, swept: true},
	} {
		for _, what := range []string{"update", "delete"} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &dim{cloud: newCloud()}
					account, w, owned := begun(t, d)
					test.then(d)
					was := d.called("mark") + d.called("delete")
					read, err := account.ReadOwned(t.Context(), owned)
					if gone := test.update == backends.NotFound; backends.HasCode(err, backends.NotFound) != gone || !gone && d.takes > 0 && !read.Partial {
						t.Errorf("read as %+v, %v", read, err)
					}
					want := test.remove
					if what == "update" {
						want = test.update
						var out Updated
						out, err = account.Update(t.Context(), Change{Owned: owned, Spec: w.Spec, Power: true})
						if want == "" && (!out.Machine.Marks.Complete || out.Machine.State != backends.StateRunning) {
							t.Errorf("%+v", out)
						}
					} else {
						var left bool
						if left, err = account.Delete(t.Context(), owned); left {
							t.Error("left to someone else")
						}
						if len(d.all()) != test.left {
							t.Errorf("%+v", d.all())
						}
						if swept := slices.Equal(d.swept, []string{owned.Key}); swept != test.swept {
							t.Errorf("swept %q", d.swept)
						}
					}
					if want == "" && err != nil || want != "" && !backends.HasCode(err, want) {
						t.Errorf("want %q, got %v", want, err)
					}
					if changed := d.called("mark") + d.called("delete") - was; changed > 0 && (want != "" || test.left > 0) {
						t.Errorf("%d changes", changed)
					}
				})
			})
		}
	}
}

// TestBegunMachineThatNeverShows: the wait for it ends with the run, and says why.
func TestBegunMachineThatNeverShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dim{cloud: newCloud()}
		account, _, owned := begun(t, d)
		d.takes = 24 * time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := account.Delete(ctx, owned)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "It is being made.") || len(d.all()) != 1 {
			t.Errorf("%v, %+v", err, d.all())
		}
	})
}

// TestWhatVanishesIsNotAsWanted: a machine that went while it was finished is no
// machine that only lacks its mark.
func TestWhatVanishesIsNotAsWanted(t *testing.T) {
	for _, code := range []backends.Code{backends.AccessDenied, backends.NotFound, backends.ProviderError} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.markErr = backends.Errorf(code, "no")
			account, pool := c.account(t)
			created, err := account.Create(t.Context(), wish(pool, "web-0"))
			if err == nil || created.AsWanted != (code == backends.ProviderError) {
				t.Errorf("%s: %+v, %v", code, created, err)
			}
		})
	}
}

// TestReinstalledWhileOff: a machine that is to be off is not started by its
// reinstallation.
func TestReinstalledWhileOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		w := wish(pool, "web-0")
		w.Spec.Start = false
		created, err := account.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		owned := Owned{Pool: w.Spec.Marks.Pool, ID: created.Machine.ID, Key: w.Spec.Marks.Key, Claim: w.Spec.Marks.Claim}
		out, err := account.Update(t.Context(), Change{Owned: owned, Spec: w.Spec, Power: true, Reinstall: true})
		if err != nil || !out.Reinstalled || out.Machine.State != backends.StateStopped {
			t.Errorf("%+v, %v", out, err)
		}
		if on, off := c.called("on"), c.called("graceful-off"); on != 0 || off != 0 {
			t.Errorf("switched on %d times, off %d times", on, off)
		}
	})
}
