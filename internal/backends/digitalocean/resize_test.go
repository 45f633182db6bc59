// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// powerDown switches a Droplet off as the rules above do, and counts.
func powerDown(t *testing.T, c *Client, m backends.Machine, times *int) backends.PowerDown {
	return func(ctx context.Context) error {
		*times++
		if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
			return err
		}
		for range 60 {
			if got, err := c.GetMachine(t.Context(), m.ID); err != nil || got.State == backends.StateStopped {
				return err
			}
			if err := backends.Sleep(ctx, time.Second); err != nil {
				return err
			}
		}
		return errors.New("it runs on")
	}
}

func offer(name string) backends.MachineSpec {
	to := editFrom()
	to.Offer, to.Marks.Complete = name, true
	return to
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		downs := 0
		off := powerDown(t, c, m, &downs)
		for _, step := range []struct {
			offer string
			grow  bool
			want  string
			downs int
		}{
			{"s-1vcpu-1gb", true, "s-1vcpu-1gb 25", 0},
			{"s-2vcpu-4gb", false, "s-2vcpu-4gb 25", 1},
			{"s-2vcpu-4gb", false, "s-2vcpu-4gb 25", 1},
			{"s-1vcpu-1gb", false, "s-1vcpu-1gb 25", 2}, // the disk was kept, so it can go back
			{"s-2vcpu-4gb", true, "s-2vcpu-4gb 80", 3},
		} {
			got, err := c.Resize(t.Context(), m, offer(step.offer), step.grow, off)
			d := cloud.Droplets()[0]
			if err != nil || got.Offer != step.offer || fmt.Sprintf("%s %d", d.Size, d.Disk) != step.want || downs != step.downs || d.Locked {
				t.Fatalf("%v: %+v, %+v, %d times off, %v", step, got, d, downs, err)
			}
		}
		if got := cloud.Droplets()[0].Status; got != "off" {
			t.Errorf("it is %s: switching it on is its caller's", got)
		}
		// What can't be is refused before it is switched off.
		if err := c.Power(t.Context(), m, backends.PowerOn); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, name := range []string{"s-1vcpu-1gb", "gpu-h100x1-80gb", "none"} {
			if got, err := c.Resize(t.Context(), m, offer(name), false, noOff(t)); err == nil || got.Offer != "s-2vcpu-4gb" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

// Whatever becomes of any one call, the same resize again ends right, and a failed one
// leaves the old size.
func TestInterruptedResizes(t *testing.T) {
	for _, kind := range []emulator.Kind{
		emulator.KindLoseAnswer, emulator.KindFailAction, emulator.KindPendingEvent, emulator.KindCapacity, "killed before", "killed after",
	} {
		t.Run(string(kind), func(t *testing.T) {
			done := false
			for nth := 1; !done; nth++ {
				synctest.Test(t, func(t *testing.T) {
					_, cloud := emulatedClient(t, slowCloud)
					cut := &cutting{base: emulator.Transport(cloud)}
					c := clientOf(t, cut, &fixedSecrets{token: testToken})
					m := booted(t, c, cloud, editFrom())
					if _, err := c.catalog.Get(t.Context()); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					switch kind {
					case "killed before":
						cut.arm(nth, cancel, true)
					case "killed after":
						cut.arm(nth, cancel, false)
					default:
						cut.arm(0, nil, false)
						addFault(t, cloud, emulator.Rule{Nth: nth, Kind: kind})
					}
					downs := 0
					off := powerDown(t, c, m, &downs)
					got, err := c.Resize(ctx, m, offer("s-2vcpu-4gb"), true, off)
					done = cut.counted() < nth
					if err != nil {
						if d := cloud.Droplets()[0]; kind == emulator.KindFailAction && (got.Offer != "s-1vcpu-1gb" || d.Disk != 25) {
							t.Errorf("call %d: a failed resize left %+v, %+v", nth, got, d)
						}
						if kind == emulator.KindCapacity && !backends.HasReason(err, backends.ReasonCapacity) {
							t.Errorf("call %d: %v", nth, err)
						}
						cloud.ClearFaults()
						cut.arm(0, nil, false)
						if got, err = c.Resize(t.Context(), m, offer("s-2vcpu-4gb"), true, off); err != nil {
							t.Fatalf("call %d: again: %v", nth, err)
						}
					}
					if d := cloud.Droplets()[0]; d.Size != "s-2vcpu-4gb" || d.Disk != 80 || got.Offer != "s-2vcpu-4gb" {
						t.Errorf("call %d: %+v, %+v", nth, got, d)
					}
				})
			}
		})
	}
}

// A Droplet that is being switched on by an earlier run is off for whoever looks, and on
// when its turn comes.
func TestResizeOfADropletThatIsBeingSwitchedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		downs := 0
		off := powerDown(t, c, m, &downs)
		if err := off(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Power(t.Context(), m, backends.PowerOn); err != nil {
			t.Fatal(err)
		}
		got, err := c.Resize(t.Context(), m, offer("s-2vcpu-4gb"), false, func(ctx context.Context) error {
			if now, err := c.GetMachine(ctx, m.ID); err != nil || now.State == backends.StateStopped {
				return err
			}
			return off(ctx)
		})
		if err != nil || got.Offer != "s-2vcpu-4gb" || downs != 2 {
			t.Errorf("%+v, %v, %d times off", got, err, downs)
		}
	})
}

func TestResizeThatCannotBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		m := booted(t, c, cloud, editFrom())
		stuck := errors.New("it doesn't stop")
		got, err := c.Resize(t.Context(), m, offer("s-2vcpu-4gb"), false, func(context.Context) error { return stuck })
		if !errors.Is(err, stuck) || got.Offer != "s-1vcpu-1gb" || counts(cloud)["POST /v2/droplets/ID/actions"] != 0 {
			t.Errorf("%+v, %v, %v", got, err, counts(cloud))
		}
	})
}

func TestCheckResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, slowCloud)
		cloud.SetSize("s-8vcpu-16gb", "nyc3")
		cloud.SetSize("g-4vcpu-16gb")
		cloud.SetSize("gpu-h100x1-80gb", "fra1")
		m := booted(t, c, cloud, editFrom())
		type check struct {
			offer         string
			grow          bool
			code          backends.Code
			says, warning string
		}
		all := func(checks map[string]check) {
			t.Helper()
			for name, tt := range checks {
				warnings, issues, err := c.CheckResize(t.Context(), m, offer(tt.offer), tt.grow)
				if err != nil || len(warnings) > 1 || (len(warnings) == 1) != (tt.warning != "") || !strings.Contains(strings.Join(warnings, ""), tt.warning) {
					t.Errorf("%s: warnings %q, %v", name, warnings, err)
				}
				if (len(issues) > 0) != (tt.code != "") {
					t.Fatalf("%s: issues %v", name, issues)
				}
				for _, issue := range issues {
					if issue.Code != tt.code || issue.Path.String() != "offer" || !strings.Contains(issue.Message+issue.Remedy, tt.says) || issue.Remedy == "" {
						t.Errorf("%s: %v %s", name, issue, issue.Remedy)
					}
					// What is advised can be had.
					for name := range c.sizesIn(t, issue.Remedy) {
						if _, issues, err := c.CheckResize(t.Context(), m, offer(name), false); err != nil || len(issues) > 0 {
							t.Errorf("the advice %s: %v, %v", name, issues, err)
						}
					}
				}
			}
		}
		all(map[string]check{
			"the same":          {offer: "s-1vcpu-1gb"},
			"not known":         {},
			"kept disk":         {offer: "s-2vcpu-4gb", warning: "stays at 25 GB"},
			"grown disk":        {offer: "s-2vcpu-4gb", grow: true, warning: "grows from 25 to 80 GB"},
			"the same disk":     {offer: "c-2", grow: true},
			"smaller disk":      {offer: "s-1vcpu-512mb-10gb", code: backends.InvalidInput, says: "10 GB"},
			"no such size":      {offer: "s-1vcpu-2gbb", code: backends.InvalidInput, says: "s-1vcpu-2gb"},
			"not in the region": {offer: "s-8vcpu-16gb", code: backends.InvalidInput, says: "is not offered in fra1"},
			"sold out":          {offer: "g-4vcpu-16gb", code: backends.InvalidInput, says: "In fra1 use"},
			"GPUs":              {offer: "gpu-h100x1-80gb", code: backends.InvalidInput, says: "can't add GPUs"},
		})
		cloud.Resize(number(t, m), "s-4vcpu-8gb")
		all(map[string]check{
			"grown by hand":          {offer: "s-2vcpu-4gb", code: backends.InvalidInput, says: "160 GB"},
			"grown by hand, and fit": {offer: "s-4vcpu-8gb-amd"},
		})
		cloud.Delete(number(t, m))
		if _, _, err := c.CheckResize(t.Context(), m, offer("s-2vcpu-4gb"), false); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("gone: %v", err)
		}
	})
}

// sizesIn are the sizes that a sentence names after "use".
func (c *Client) sizesIn(t *testing.T, sentence string) map[string]bool {
	t.Helper()
	catalog, err := c.catalog.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	_, advice, _ := strings.Cut(strings.ToLower(sentence), "use ")
	for _, word := range strings.FieldsFunc(advice, func(r rune) bool { return r == ' ' || r == ',' || r == '.' }) {
		if catalog.sizes[word] != nil {
			out[word] = true
		}
	}
	if len(out) == 0 {
		t.Errorf("no size in %q", sentence)
	}
	return out
}
