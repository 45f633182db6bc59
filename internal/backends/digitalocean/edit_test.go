// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// editFrom and editTo are two wishes that differ in all that can be changed in place.
func editFrom() backends.MachineSpec {
	from := testSpec()
	from.Labels = map[string]string{"role": "web", "tier": "one", "old": ""}
	from.Options = backends.Values{"tags": []any{"keep", "drop"}}
	return from
}

func editTo() backends.MachineSpec {
	to := editFrom()
	to.Name = "api-0"
	to.Labels = map[string]string{"role": "api", "tier": "one"}
	to.Options = backends.Values{
		"tags": []any{"keep", "new"}, "ipv6": true,
		"backups": true, "backup_policy": backends.Values{"plan": "weekly", "weekday": "TUE", "hour": int64(8)},
	}
	to.Marks.Key, to.Marks.Digest, to.Marks.Complete = "inst_00000000000000000000000000", "i999999-o999999-r999999", true
	return to
}

// booted is an emulated Droplet that runs and is complete, with a tag of someone else's.
func booted(t *testing.T, c *Client, cloud *emulated.Service, spec backends.MachineSpec) backends.Machine {
	t.Helper()
	m, err := c.MakeMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // of the bubble's clock
	if _, err = c.MarkMachine(t.Context(), m, completed(m)); err != nil {
		t.Fatal(err)
	}
	cloud.SetTags(number(t, m), append(cloud.Droplets()[0].Tags, "k8s:theirs"))
	if m, err = c.GetMachine(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	cloud.ClearCalls()
	return m
}

// noOff is a [backends.PowerDown] that nothing may call.
func noOff(t *testing.T) backends.PowerDown {
	return func(context.Context) error {
		t.Error("the Droplet would be switched off")
		return nil
	}
}

// edited is what of a Droplet edits change, in one line.
func edited(d emulated.Droplet) string {
	tags := slices.Sorted(slices.Values(d.Tags))
	return fmt.Sprintf("%s %s %d %v ipv6 %v %q %v", d.Name, d.Size, d.Disk, d.Status, d.IPv6, d.Policy, tags)
}

const editedTo = `api-0 s-1vcpu-1gb 25 active ipv6 true "weekly TUE 8" [better-compute better-compute:account:pacct_0123456789abcdefghjkmnpqrs ` +
	`better-compute:claim:c0ffee better-compute:complete better-compute:digest:i999999-o999999-r999999 better-compute:key:inst_00000000000000000000000000 ` +
	`better-compute:pool:pool_0123456789abcdefghjkmnpqrs k8s:theirs keep new role:api tier:one]`

var slowCloud = emulated.Options{Boot: 16 * time.Second, StatusLag: time.Second, Latency: 20 * time.Millisecond}

func TestEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		got, err := c.Edit(t.Context(), m, editFrom(), editTo(), noOff(t))
		if err != nil {
			t.Fatal(err)
		}
		if now := edited(cloud.Droplets()[0]); now != editedTo {
			t.Errorf("%s, want\n%s", now, editedTo)
		}
		back, err := c.GetMachine(t.Context(), m.ID)
		if err != nil || got.Name != back.Name || got.Marks != back.Marks || got.Marks != editTo().Marks || !maps.Equal(got.Labels, back.Labels) ||
			!slices.Equal(got.Addresses, back.Addresses) || got.First(backends.IPv6, backends.Public) == "" || got.ID != m.ID {
			t.Errorf("returned %+v, and is %+v, %v", got, back, err)
		}
		// What nothing carries any more, of the tags that are the machine's own, is gone.
		for _, tag := range cloud.Tags() {
			if c.isOwn(tag) && !slices.Contains(cloud.Droplets()[0].Tags, tag) {
				t.Errorf("%s is left", tag)
			}
		}
		// Once it is as wanted, a look is all, from whichever wish.
		for _, from := range []backends.MachineSpec{editTo(), editFrom(), testSpec()} {
			cloud.ClearCalls()
			if again, err := c.Edit(t.Context(), m, from, editTo(), noOff(t)); err != nil || again.Marks != editTo().Marks || again.Name != "api-0" {
				t.Errorf("again: %+v, %v", again, err)
			}
			if got := counts(cloud); got["GET /v2/droplets/ID"] != 1 || len(got) > 2 || len(got) == 2 && got["GET /v2/droplets/ID/backups/policy"] != 1 {
				t.Errorf("again: %v", got)
			}
		}
	})
}

// Whatever becomes of any one call, the same edit again ends right.
func TestInterruptedEdits(t *testing.T) {
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		if _, err := c.Edit(t.Context(), m, editFrom(), editTo(), noOff(t)); err != nil {
			t.Fatal(err)
		}
		calls = len(cloud.Calls())
	})
	if calls < 20 {
		t.Fatalf("only %d calls", calls)
	}
	kinds := []emulator.Kind{emulator.KindLoseAnswer, emulator.KindFailAction, emulator.KindPendingEvent, "killed before", "killed after"}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			for nth := 1; nth <= calls; nth++ {
				synctest.Test(t, func(t *testing.T) {
					_, cloud := emulatedClient(t, slowCloud)
					cut := &cutting{base: emulator.Transport(cloud)}
					c := clientOf(t, cut, &fixedSecrets{token: testToken})
					m := booted(t, c, cloud, editFrom())
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					switch kind {
					case "killed before":
						cut.arm(nth, cancel, true)
					case "killed after":
						cut.arm(nth, cancel, false)
					default:
						addFault(t, cloud, emulator.Rule{Nth: nth, Kind: kind})
					}
					seen, err := c.Edit(ctx, m, editFrom(), editTo(), noOff(t))
					if err != nil {
						if seen.ID != m.ID || seen.Marks.Claim != m.Marks.Claim {
							t.Errorf("call %d: last seen %+v", nth, seen)
						}
						findable(t, c, nth)
						cloud.ClearFaults()
						cut.arm(0, nil, false)
						got, err := c.GetMachine(t.Context(), m.ID)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := c.Edit(t.Context(), got, editFrom(), editTo(), noOff(t)); err != nil {
							t.Fatalf("call %d: again: %v", nth, err)
						}
					}
					if now := edited(cloud.Droplets()[0]); now != editedTo {
						t.Errorf("call %d: %s", nth, now)
					}
				})
			}
		})
	}
}

// findable: wherever an edit ends, the machine is found by its old key as long as it
// carries that, by the new one from before it has the new name, and never by none.
func findable(t *testing.T, c *Client, nth int) {
	t.Helper()
	old, err := c.FindMachines(t.Context(), editFrom().Marks.Key)
	if err != nil {
		t.Fatal(err)
	}
	now, err := c.FindMachines(t.Context(), editTo().Marks.Key)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(old)+len(now) == 0:
		t.Errorf("call %d: it is found by no key", nth)
	case len(now) == 0 && old[0].Name == editTo().Name:
		t.Errorf("call %d: it has the new name and not the new key", nth)
	case len(now) == 1 && len(old) == 1 && !now[0].Marks.Doubled:
		t.Errorf("call %d: %+v", nth, now[0].Marks)
	}
}

// cutting is a transport that ends a run at one of its calls.
type cutting struct {
	base http.RoundTripper
	mu   sync.Mutex
	// calls are those since it was armed, of which the nth ends the run.
	nth, calls int
	cancel     func()
	before     bool
}

// arm sets the call at which the run ends, 0 for none: before it is sent, or after it was
// carried out and before it is answered.
func (c *cutting) arm(nth int, cancel func(), before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nth, c.calls, c.cancel, c.before = nth, 0, cancel, before
}

// counted is how many calls there were since it was armed.
func (c *cutting) counted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.calls++
	cuts, over, before, cancel := c.calls == c.nth, c.nth > 0 && c.calls > c.nth, c.before, c.cancel
	c.mu.Unlock()
	switch {
	case over && r.Context().Err() != nil:
		return nil, r.Context().Err()
	case !cuts:
		return c.base.RoundTrip(r)
	case before:
		cancel()
		return nil, context.Canceled
	}
	answer, err := c.base.RoundTrip(r)
	cancel()
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	return nil, context.Canceled
}

// What a wish doesn't speak of stays as it is, and so does what others have put there.
func TestEditLeavesAloneWhatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		if _, err := c.Edit(t.Context(), m, editFrom(), editTo(), noOff(t)); err != nil {
			t.Fatal(err)
		}
		before := edited(cloud.Droplets()[0])
		nothing := editTo()
		nothing.Labels, nothing.Options, nothing.Network = nil, nil, ""
		cloud.ClearCalls()
		if _, err := c.Edit(t.Context(), m, editTo(), nothing, noOff(t)); err != nil || edited(cloud.Droplets()[0]) != before || len(cloud.Calls()) != 1 {
			t.Errorf("%v: %s, %v", err, edited(cloud.Droplets()[0]), cloud.Calls())
		}
		// A tag that both a label and the raw tags are stays while one of them wants it,
		// or has stopped speaking of it.
		twice := editTo()
		twice.Options["tags"] = []any{"role:api", "TIER:one"}
		for _, to := range []backends.MachineSpec{
			func() backends.MachineSpec { to := editTo(); to.Options["tags"] = []any{}; return to }(),
			func() backends.MachineSpec { to := nothing; to.Options = backends.Values{"tags": []any{}}; return to }(),
		} {
			if _, err := c.Edit(t.Context(), m, twice, to, noOff(t)); err != nil {
				t.Fatal(err)
			}
			if tags := cloud.Droplets()[0].Tags; !slices.Contains(tags, "role:api") || !slices.Contains(tags, "tier:one") {
				t.Errorf("tags %v", tags)
			}
		}
		// None of ours is a wish too.
		none := editTo()
		none.Labels, none.Options = map[string]string{}, backends.Values{"tags": []any{}, "backups": false}
		if _, err := c.Edit(t.Context(), m, editTo(), none, noOff(t)); err != nil {
			t.Fatal(err)
		}
		d := cloud.Droplets()[0]
		own := slices.DeleteFunc(d.Tags, func(tag string) bool { return strings.HasPrefix(tag, DefaultTagPrefix) })
		if !slices.Equal(own, []string{"k8s:theirs"}) || d.Backups || !d.IPv6 {
			t.Errorf("%s", edited(d))
		}
	})
}

func TestEditOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		var warnings []string
		ctx := backends.WithWarnings(t.Context(), func(text string) { warnings = append(warnings, text) })
		policy := func(plan string, fields backends.Values) backends.Values {
			fields["plan"] = plan
			return backends.Values{"backups": true, "backup_policy": fields}
		}
		for _, step := range []struct {
			options backends.Values
			policy  string
			actions int
		}{
			{backends.Values{"backups": true}, "daily 0", 1},
			{backends.Values{"backups": true}, "daily 0", 0},
			{policy("daily", backends.Values{}), "daily 0", 0},
			{policy("daily", backends.Values{"hour": int64(0)}), "daily 0", 0},
			{policy("daily", backends.Values{"hour": int64(4)}), "daily 4", 1},
			{policy("weekly", backends.Values{"weekday": "MON"}), "weekly MON 0", 1},
			{policy("weekly", backends.Values{"weekday": "MON", "hour": int64(20)}), "weekly MON 20", 1},
			{backends.Values{"backups": true}, "weekly MON 20", 0},
			{backends.Values{"ipv6": false, "monitoring": true, "droplet_agent": false}, "weekly MON 20", 0},
			{backends.Values{"backups": false, "ipv6": true}, "", 2},
			{backends.Values{"backups": false, "ipv6": false}, "", 0},
		} {
			to := editFrom()
			to.Marks.Complete, to.Options = true, step.options
			cloud.ClearCalls()
			if _, err := c.Edit(ctx, m, to, to, noOff(t)); err != nil {
				t.Fatalf("%v: %v", step.options, err)
			}
			if d := cloud.Droplets()[0]; d.Policy != step.policy || counts(cloud)["POST /v2/droplets/ID/actions"] != step.actions {
				t.Errorf("%v: %q, %v", step.options, d.Policy, counts(cloud))
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "can't take it away") {
			t.Errorf("warnings %q", warnings)
		}
	})
}

// Marks that someone else has written since are not overwritten.
func TestEditOfAMachineThatWasClaimedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		tags := slices.DeleteFunc(cloud.Droplets()[0].Tags, func(tag string) bool { return strings.Contains(tag, ":claim:") })
		cloud.SetTags(number(t, m), append(tags, "better-compute:claim:theirs"))
		before := edited(cloud.Droplets()[0])
		_, err := c.Edit(t.Context(), m, editFrom(), editTo(), noOff(t))
		if e := wantError(t, err); e.Code != backends.Conflict || edited(cloud.Droplets()[0]) != before {
			t.Errorf("%v: %s", err, edited(cloud.Droplets()[0]))
		}
		if _, err := c.Edit(t.Context(), backends.Machine{ID: "4711"}, editFrom(), editTo(), noOff(t)); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("gone: %v", err)
		}
		bad := editTo()
		bad.Options["tags"] = []any{"better-compute:complete"}
		cloud.ClearCalls()
		if _, err := c.Edit(t.Context(), m, editFrom(), bad, noOff(t)); !backends.HasCode(err, backends.InvalidInput) || len(cloud.Calls()) != 0 {
			t.Errorf("a mark as a tag: %v", err)
		}
	})
}
