// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// remakingCloud reinstalls a machine by destroying it and making another under its id.
type remakingCloud struct{ *cloud }

func (c remakingCloud) IDsAreReused() {}

func (c remakingCloud) RemakeMachine(ctx context.Context, id string, spec backends.MachineSpec) (backends.Machine, error) {
	m, err := c.MakeMachine(ctx, spec)
	if err != nil {
		return m, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count("remake")
	made := c.machines[m.ID]
	delete(c.machines, m.ID)
	made.ID = id
	c.machines[id] = made
	return *c.show(id), nil
}

// TestReinstallationThatDestroyedItsMachineEnds: a run died while the cloud destroyed the
// machine, the refresh of the next one still saw it, and its update doesn't.
func TestReinstallationThatDestroyedItsMachineEnds(t *testing.T) {
	type given struct {
		*cloud
		m     backends.Machine
		owned *Owned
	}
	destroyed := func(g given) { g.change(g.m.ID, func(m *cloudMachine) { m.deleted = time.Now() }) }
	for name, test := range map[string]struct {
		happens   func(g given)
		change    func(c *Change)
		wrap      func(c *cloud) backends.Backend
		made      bool
		wantsCode backends.Code
	}{
		"it is destroyed":       {happens: destroyed, made: true},
		"it is to be off":       {happens: destroyed, change: func(c *Change) { c.Spec.Start = false }, made: true},
		"it isn't reinstalled":  {happens: destroyed, change: func(c *Change) { c.Reinstall = false }, wantsCode: backends.NotFound},
		"a cloud that rebuilds": {happens: destroyed, wrap: func(c *cloud) backends.Backend { return c }, wantsCode: backends.NotFound},
		"it was never ours":     {happens: func(g given) { destroyed(g); g.owned.Claim = "" }, wantsCode: backends.NotFound},
		"its id is a stranger's": {happens: func(g given) {
			g.change(g.m.ID, func(m *cloudMachine) { m.Name, m.Marks = "theirs", backends.Marks{} })
		}, wantsCode: backends.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				var b backends.Backend = remakingCloud{c}
				if test.wrap != nil {
					b = test.wrap(c)
				}
				first, pool := openDisks(t, b)
				m, owned := created(t, first, pool)
				account, _ := openDisks(t, b)
				if _, err := account.Read(t.Context(), owned.Pool, owned.ID); err != nil {
					t.Fatal(err)
				}
				test.happens(given{c, m, &owned})
				if err := backends.Sleep(t.Context(), c.deleting); err != nil {
					t.Fatal(err)
				}
				change := Change{Owned: owned, Spec: wish(pool, "web-0").Spec, Reinstall: true, Power: true}
				change.Spec.Marks.Digest = backends.Digest(owned.Key, map[backends.DigestField]string{backends.DigestImage: "ubuntu"})
				if test.change != nil {
					test.change(&change)
				}
				out, err := account.Update(t.Context(), change)
				if !test.made {
					if !backends.HasCode(err, test.wantsCode) || c.called("remake") != 0 || out.Reinstalled {
						t.Errorf("%+v, %v, %d remade", out, err, c.called("remake"))
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				all := c.all()
				if len(all) != 1 || all[0].ID != m.ID || out.Machine.ID != m.ID || !out.Reinstalled {
					t.Fatalf("the cloud has %+v, the update %+v", all, out)
				}
				want := change.Spec.Marks
				want.Claim, want.Complete = owned.Claim, true
				if all[0].Marks != want || all[0].State != wantedState(change.Spec.Start) {
					t.Errorf("it is %+v", all[0])
				}
			})
		})
	}
}
