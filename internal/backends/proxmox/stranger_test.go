// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// meddler is a network in which something happens just before, or after, a request.
type meddler struct {
	http.RoundTripper
	method        string
	path          *regexp.Regexp
	before, after func()
	left          int // requests until then
}

// arm makes the nth request of its kind from now on, counted from 1, the one.
func (m *meddler) arm(nth int) { m.left = nth }

func (m *meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.left == 0 || r.Method != m.method || !m.path.MatchString(r.URL.Path) {
		return m.RoundTripper.RoundTrip(r)
	}
	m.left--
	if m.left > 0 {
		return m.RoundTripper.RoundTrip(r)
	}
	m.before()
	answer, err := m.RoundTripper.RoundTrip(r)
	m.after()
	return answer, err
}

var configPath = regexp.MustCompile(`/qemu/\d+/config$`)

// meddled is a client whose requests of a kind can be meddled with, and its cluster.
func meddled(t *testing.T, options emulated.Options, method string, path *regexp.Regexp) (*Client, *emulated.Service, *meddler) {
	t.Helper()
	options.PlainHTTP = true
	cluster, err := emulated.New(options)
	if err != nil {
		t.Fatal(err)
	}
	m := &meddler{RoundTripper: emulator.Transport(cluster), method: method, path: path, before: func() {}, after: func() {}}
	return clientOf(t, m), cluster, m
}

// TestChangesAreOfWhatWasRead lets a stranger take the VMID of one of ours just before
// each change of its options that there is: nothing of it is changed.
func TestChangesAreOfWhatWasRead(t *testing.T) {
	first := slots(testKey, 100_000_000, 999_999_999)[0]
	made := func(do func(context.Context, *Client, backends.Machine) error) func(context.Context, *testing.T, *Client, *emulated.Service, func()) error {
		return func(ctx context.Context, t *testing.T, c *Client, _ *emulated.Service, arm func()) error {
			m := mustCreate(t, c, testSpec())
			arm()
			return do(ctx, c, m)
		}
	}
	reinstall := made(func(ctx context.Context, c *Client, m backends.Machine) error { return c.Reinstall(ctx, m, testSpec()) })
	creation := func(ctx context.Context, _ *testing.T, c *Client, _ *emulated.Service, arm func()) error {
		arm()
		_, err := create(ctx, c, testSpec())
		return err
	}
	for name, test := range map[string]struct {
		nth int // of the changes of options
		do  func(context.Context, *testing.T, *Client, *emulated.Service, func()) error
	}{
		"a creation's options":      {1, creation},
		"a creation's last tag":     {2, creation},
		"a reinstallation's":        {1, reinstall},
		"a reinstallation's tag":    {2, reinstall},
		"protection":                {1, made(func(ctx context.Context, c *Client, m backends.Machine) error { return c.Protect(ctx, m, true) })},
		"another claim":             {1, made(remarked)},
		"a protected VM to destroy": {1, deletedHalfMade},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster, network := meddled(t, slow(), http.MethodPut, configPath)
				var before emulated.VM
				network.before = func() {
					cluster.PutStranger(first, "pve1", "theirs", "hands off", "prod")
					cluster.SetPower(first, true)
					before = emulatedVM(t, cluster, fmt.Sprint(first))
				}
				err := test.do(t.Context(), t, c, cluster, func() { network.arm(test.nth) })
				wantCode(t, err, backends.AccessDenied)
				after := emulatedVM(t, cluster, fmt.Sprint(first))
				if before.Name != "theirs" || !maps.Equal(after.Config, before.Config) || !after.Running {
					t.Errorf("%+v, before %+v", after, before)
				}
			})
		})
	}
}

func remarked(ctx context.Context, c *Client, m backends.Machine) error {
	marks := m.Marks
	marks.Claim = "another"
	_, err := c.MarkMachine(ctx, m, marks)
	return err
}

// deletedHalfMade deletes a half-made VM that has its template's protection.
func deletedHalfMade(ctx context.Context, t *testing.T, c *Client, cluster *emulated.Service, arm func()) error {
	m, err := c.MakeMachine(ctx, testSpec())
	if err != nil {
		t.Fatal(err)
	}
	cluster.SetOption(atoi(t, m.ID), "protection", "1")
	arm()
	return c.DeleteMachine(ctx, m)
}

// TestCompletionIsOfOurClaim doesn't complete what another run has taken over.
func TestCompletionIsOfOurClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m, err := c.MakeMachine(t.Context(), testSpec())
		if err == nil {
			m, err = c.FinishMachine(t.Context(), m, testSpec())
		}
		if err == nil {
			err = remarked(t.Context(), clientOf(t, emulator.Transport(cluster)), m)
		}
		if err != nil {
			t.Fatal(err)
		}
		marks := m.Marks
		marks.Complete = true
		_, err = c.MarkMachine(t.Context(), m, marks)
		wantCode(t, err, backends.Conflict)
		if v := emulatedVM(t, cluster, m.ID); slices.Contains(v.Tags, ManagedTag) || !slices.Contains(v.Tags, "bc-claim-another") {
			t.Errorf("%v", v.Tags)
		}
	})
}

// TestTagsAloneDestroyNothing: a VM whose description was replaced by hand is neither
// deleted nor reinstalled, until it says again whose it is, as the error shows or as
// the next change of its marks writes it.
func TestTagsAloneDestroyNothing(t *testing.T) {
	for _, mended := range []string{"by hand", "by a mark"} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			m := mustCreate(t, c, testSpec())
			cluster.SetOption(atoi(t, m.ID), "description", "ask Ann")
			if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
				t.Errorf("it is ours by its tags: %v", err)
			}
			wantCode(t, c.Reinstall(t.Context(), m, testSpec()), backends.AccessDenied)
			e := wantCode(t, c.DeleteMachine(t.Context(), m), backends.AccessDenied)
			if v := emulatedVM(t, cluster, m.ID); v.Config["description"] != "ask Ann" {
				t.Errorf("%+v", v)
			}
			_, line, _ := strings.Cut(e.Remedy, "run again: ")
			switch mended {
			case "by hand":
				cluster.SetOption(atoi(t, m.ID), "description", "ask Ann\n\n"+line)
			default:
				if err := remarked(t.Context(), c, m); err != nil {
					t.Fatal(err)
				}
			}
			if v := emulatedVM(t, cluster, m.ID); !strings.Contains(v.Config["description"], "ask Ann") {
				t.Errorf("%+v", v)
			}
			if err := c.DeleteMachine(t.Context(), m); err != nil || len(cluster.Machines()) != 0 {
				t.Errorf("%s: %v, %q", mended, err, line)
			}
		})
	}
}

// TestDeletionIsNotRepeatedBlindly lets a stranger take the VMID after a deletion that
// could not get its lock.
func TestDeletionIsNotRepeatedBlindly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster, network := meddled(t, emulated.Options{}, http.MethodDelete, regexp.MustCompile(`/qemu/\d+$`))
		m := mustCreate(t, c, testSpec())
		if err := cluster.AddFault(emulator.Rule{Method: "DELETE", Path: "*", Nth: 1, Times: 1, Kind: emulator.KindLockTimeout}); err != nil {
			t.Fatal(err)
		}
		network.after = func() { putStranger(cluster, atoi(t, m.ID)) }
		network.arm(1)
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Error(err)
		}
		if v := emulatedVM(t, cluster, m.ID); v.Name != "theirs" {
			t.Errorf("%+v", v)
		}
	})
}
