// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func TestPower(t *testing.T) {
	for action, want := range map[backends.PowerAction]string{
		backends.PowerOn: "power_on", backends.PowerOff: "power_off", backends.PowerGracefulOff: "shutdown",
		backends.PowerReset: "power_cycle", backends.PowerCycle: "power_cycle", backends.PowerGracefulRestart: "reboot",
	} {
		s := always(jsonAnswer(201, `{"action":{"id":9,"status":"in-progress","type":"`+want+`"}}`))
		if err := scripted(t, s).Power(t.Context(), backends.Machine{ID: "4711"}, action); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if len(s.requests) != 1 || s.requests[0] != "POST /v2/droplets/4711/actions" || strings.TrimSpace(s.bodies[0]) != `{"type":"`+want+`"}` {
			t.Errorf("%s: %v %v", action, s.requests, s.bodies)
		}
	}
	c, cloud := emulatedClient(t, emulated.Options{})
	if e := wantError(t, c.Power(t.Context(), backends.Machine{ID: "1"}, backends.PowerNMI)); e.Code != backends.Unsupported || len(cloud.Calls()) != 0 {
		t.Errorf("nmi: %v", e)
	}
	if e := wantError(t, c.Power(t.Context(), backends.Machine{ID: "1"}, backends.PowerOn)); e.Code != backends.NotFound {
		t.Errorf("gone: %v", e)
	}
}

// The API refuses to switch on what is on.
func TestPowerThatIsThereAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := emulatedClient(t, emulated.Options{Boot: time.Minute})
		m := made(t, c)
		time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
		state := func() backends.State {
			t.Helper()
			got, err := c.GetMachine(t.Context(), m.ID)
			if err != nil {
				t.Fatal(err)
			}
			return got.State
		}
		for _, step := range []struct {
			action backends.PowerAction
			after  backends.State
		}{
			{backends.PowerOn, backends.StateRunning},
			{backends.PowerGracefulOff, backends.StateStopped},
			{backends.PowerGracefulOff, backends.StateStopped},
			{backends.PowerOff, backends.StateStopped},
			{backends.PowerOn, backends.StateRunning},
			{backends.PowerOff, backends.StateStopped},
		} {
			if err := c.Power(t.Context(), m, step.action); err != nil {
				t.Fatalf("%s: %v", step.action, err)
			}
			time.Sleep(5 * time.Minute)
			if got := state(); got != step.after {
				t.Fatalf("after %s it is %s", step.action, got)
			}
		}
		// But what can't be done to one that is off is an error.
		if e := wantError(t, c.Power(t.Context(), m, backends.PowerGracefulRestart)); e.Reason != backends.ReasonInvalid {
			t.Errorf("got %+v", e)
		}
	})
}

// One event at a time: the next is waited for, without an error.
func TestPendingEventIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		m := made(t, c)
		cloud.BeginEvent(number(t, m), 40*time.Second)
		start := time.Now()
		if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < 40*time.Second || waited > 80*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{DeleteTime: time.Minute})
		m := made(t, c)
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetMachine(t.Context(), m.ID); err != nil {
			t.Errorf("while it goes: %v", err)
		}
		time.Sleep(2 * time.Minute) // of the bubble's clock
		_, err := c.GetMachine(t.Context(), m.ID)
		if e := wantError(t, err); e.Code != backends.NotFound || len(cloud.Droplets()) != 0 {
			t.Errorf("got %v", e)
		}
		if e := wantError(t, c.DeleteMachine(t.Context(), m)); e.Code != backends.NotFound {
			t.Errorf("got %v", e)
		}
	})
}

func TestReinstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: time.Minute})
		m := made(t, c, func(s *backends.MachineSpec) { s.UserData = "#!/bin/sh\necho old" })
		time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
		for image, want := range map[string]int64{"debian-13-x64": 203040811, "195932981": 195932981} {
			spec := testSpec()
			spec.Image, spec.UserData = image, "#!/bin/sh\necho new"
			start := time.Now()
			if err := c.Reinstall(t.Context(), m, spec); err != nil {
				t.Fatal(err)
			}
			if d := cloud.Droplets()[0]; d.Image != want || d.UserData != "#!/bin/sh\necho old" || d.Locked || time.Since(start) == 0 {
				t.Errorf("got %+v after %v", d, time.Since(start))
			}
		}
		spec := testSpec()
		spec.Image = "nope"
		if e := wantError(t, c.Reinstall(t.Context(), m, spec)); e.Path.String() != "image" {
			t.Errorf("got %v", e)
		}
	})
}

func TestReinstallOfASizeNoLongerSold(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c)
	cloud.SetSize("s-1vcpu-1gb")
	m.Offer = "a-size-of-old"
	spec := testSpec()
	spec.Image = "debian-13-x64"
	if err := c.Reinstall(t.Context(), m, spec); err != nil || cloud.Droplets()[0].Image != 203040811 {
		t.Errorf("%v", err)
	}
}

func TestReinstallThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Boot: time.Minute})
		m := made(t, c)
		time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
		addFault(t, cloud, emulator.Rule{Method: "POST", Path: "/droplets/*/actions", Kind: emulator.KindFailAction})
		e := wantError(t, c.Reinstall(t.Context(), m, testSpec()))
		if e.Reason != backends.ReasonAction || e.Details["type"] != "rebuild" {
			t.Errorf("got %+v", e)
		}
		if e := wantError(t, c.Diagnose(t.Context(), m)); e.Reason != backends.ReasonAction || !strings.Contains(e.Message, "rebuild") {
			t.Errorf("got %+v", e)
		}
	})
}

// An answer that is lost leaves open whether the rebuild was begun. It is looked
// for, whether it still runs or has ended, and begun anew only when there is none.
func TestLostReinstallIsNotStartedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		boot   time.Duration
		before int // reinstallations of an earlier day
		reach  bool
		want   int // requests to rebuild
	}{
		"still runs":          {boot: time.Minute, reach: true, want: 1},
		"has ended":           {reach: true, want: 1},
		"never arrived":       {want: 2},
		"only earlier ones":   {before: 2, want: 2},
		"ended, after others": {before: 2, reach: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := emulated.New(emulated.Options{Boot: tt.boot})
				tries, begun, armed := 0, 0, false
				c := scripted(t, roundTrip(func(r *http.Request) (*http.Response, error) {
					if !armed || r.Method != http.MethodPost {
						return emulator.Transport(cloud).RoundTrip(r)
					}
					tries++
					if tries == 1 && !tt.reach {
						return nil, io.ErrUnexpectedEOF
					}
					a, err := emulator.Transport(cloud).RoundTrip(r)
					if err == nil && a.StatusCode == http.StatusCreated {
						begun++
						if tries == 1 {
							return nil, io.ErrUnexpectedEOF
						}
					}
					return a, err
				}))
				m := made(t, c)
				time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
				for range tt.before {
					if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Minute)
				}
				armed = true
				if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
					t.Fatal(err)
				}
				if tries != tt.want || begun != 1 {
					t.Errorf("%d requests, want %d; the disk was wiped %d times", tries, tt.want, begun)
				}
			})
		})
	}
}

func TestNewestFailure(t *testing.T) {
	action := func(id int, kind, status string) godo.Action { return godo.Action{ID: id, Type: kind, Status: status} }
	const good = "completed"
	for name, tt := range map[string]struct {
		actions []godo.Action
		want    int
	}{
		"none":               {},
		"all well":           {[]godo.Action{action(1, "create", good)}, 0},
		"failed creation":    {[]godo.Action{action(1, "create", actionFailed)}, 1},
		"mended":             {[]godo.Action{action(3, "power_on", good), action(2, "power_on", actionFailed)}, 0},
		"mended by another":  {[]godo.Action{action(2, "power_on", actionFailed), action(3, "power_cycle", good)}, 0},
		"tried again":        {[]godo.Action{action(2, "power_on", actionFailed), action(3, "power_on", actionRuns)}, 0},
		"another kind since": {[]godo.Action{action(2, "power_on", actionFailed), action(3, "enable_backups", good)}, 2},
		"the newer of two":   {[]godo.Action{action(5, "destroy", actionFailed), action(4, "power_on", actionFailed)}, 5},
		"an edit that failed, before it is switched on again": {[]godo.Action{action(6, "power_on", actionRuns), action(5, "resize", actionFailed)}, 0},
	} {
		got := 0
		if a := newestFailure(tt.actions); a != nil {
			got = a.ID
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestDiagnose(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c)
	cloud.ClearCalls()
	if err := c.Diagnose(t.Context(), m); err != nil || len(cloud.Calls()) != 1 {
		t.Errorf("a healthy machine: %v, %v", err, counts(cloud))
	}
	if e := wantError(t, c.Diagnose(t.Context(), backends.Machine{ID: "999999"})); e.Code != backends.NotFound {
		t.Errorf("gone: %v", e)
	}
}

// withVolumes is a running machine with volumes attached, of the ids returned.
func withVolumes(t *testing.T, c *Client, cloud *emulated.Service, n int) (backends.Machine, []backends.Volume) {
	t.Helper()
	m := made(t, c)
	time.Sleep(2 * time.Minute) // of the bubble's clock: the Droplet boots
	var volumes []backends.Volume
	for i := range n {
		got := send(t, cloud, "POST", "/v2/volumes", map[string]any{"name": fmt.Sprintf("data-%d", i), "region": "fra1", "size_gigabytes": 10})
		id := field[string](t, got, "volume", "id")
		if !cloud.AttachVolume(id, number(t, m)) {
			t.Fatal("not attached")
		}
		volumes = append(volumes, backends.Volume{ID: id, Name: fmt.Sprintf("data-%d", i)})
	}
	return m, volumes
}

func TestSelectiveDestroy(t *testing.T) {
	for name, tt := range map[string]struct {
		rule  emulator.Rule
		calls int
		code  backends.Code // of the error; "": none
		left  int           // volumes
	}{
		"all well":      {calls: 1, left: 1},
		"lost answer":   {rule: emulator.Rule{Kind: emulator.KindLoseAnswer}, calls: 0, code: backends.NotFound, left: 1},
		"pending event": {rule: emulator.Rule{Kind: emulator.KindPendingEvent, Times: 2}, calls: 3, left: 1},
		"conflict":      {rule: emulator.Rule{Kind: emulator.KindStatus, Status: 409, Times: 2}, calls: 3, left: 1},
		"forbidden":     {rule: emulator.Rule{Kind: emulator.KindStatus, Status: 403}, calls: 1, code: backends.ProviderError, left: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{DeleteTime: 10 * time.Second})
				m, volumes := withVolumes(t, c, cloud, 3)
				if tt.rule.Kind != "" {
					tt.rule.Method, tt.rule.Path = "DELETE", "/droplets/*/selective"
					addFault(t, cloud, tt.rule)
				}
				cloud.ClearCalls()
				err := c.DeleteMachineWith(t.Context(), m, volumes[:2])
				if got := counts(cloud)["DELETE /v2/droplets/ID/destroy_with_associated_resources/selective"]; tt.calls > 0 && got != tt.calls {
					t.Errorf("%d calls", got)
				}
				if tt.code == "" && err != nil || tt.code != "" && !backends.HasCode(err, tt.code) {
					t.Errorf("got %v", err)
				}
				time.Sleep(time.Minute) // of the bubble's clock: they go
				var left []string
				for _, v := range cloud.Volumes() {
					left = append(left, v.ID)
				}
				if len(left) != tt.left || !slices.Contains(left, volumes[2].ID) {
					t.Errorf("left %v of %v", left, volumes)
				}
				if tt.left == 1 {
					if len(cloud.Droplets()) != 0 {
						t.Error("the Droplet is there")
					}
					if err := c.DeleteMachineWith(t.Context(), m, volumes[:2]); !backends.HasCode(err, backends.NotFound) {
						t.Errorf("again: %v", err)
					}
				}
			})
		})
	}
}

// A volume that isn't on the machine must not read as a machine that is gone.
func TestSelectiveDestroyOfAVolumeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		m, volumes := withVolumes(t, c, cloud, 1)
		cloud.AttachVolume(volumes[0].ID, 0)
		err := c.DeleteMachineWith(t.Context(), m, append(volumes, backends.Volume{ID: "760e09ef-dc84-11e8-981e-3cfdfeaae000"}))
		if e := wantError(t, err); e.Code != backends.ProviderError || e.Reason != backends.ReasonInvalid || len(cloud.Droplets()) != 1 {
			t.Errorf("got %+v", e)
		}
	})
}

func TestSelectiveDestroyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{DeleteTime: 10 * time.Second})
		m, volumes := withVolumes(t, c, cloud, 2)
		addFault(t, cloud, emulator.Rule{Method: "DELETE", Path: "/droplets/*/selective", Kind: emulator.KindFailAction})
		if err := c.DeleteMachineWith(t.Context(), m, volumes[:1]); err != nil {
			t.Fatal(err)
		}
		if err := c.Diagnose(t.Context(), m); err != nil {
			t.Errorf("while it runs: %v", err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		e := wantError(t, c.Diagnose(t.Context(), m))
		if e.Reason != backends.ReasonAction || !strings.Contains(e.Message, "data-0") || strings.Contains(e.Message, "data-1") {
			t.Errorf("got %+v", e)
		}
	})
}

func TestPlainDeleteKeepsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{})
		m, _ := withVolumes(t, c, cloud, 2)
		cloud.ClearCalls()
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := counts(cloud); len(cloud.Volumes()) != 2 || !maps.Equal(got, map[string]int{"DELETE /v2/droplets/ID": 1}) {
			t.Errorf("%v, %v", cloud.Volumes(), got)
		}
	})
}
