// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// "one being detached [is] INVALID_STATE": an apply waits for that instead; and the
// specification's detach "asks the provider even while an attach is still running
// there", as an apply after one that was interrupted does.
func TestVolumeIsDetachedWhileAnAttachIsStillRunning(t *testing.T) {
	onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		made := s.make(volumeType, nil)
		half := s.interrupted(made, time.Second, given{"instances": uris[:1]})
		if v := s.one(); v.machine != "" {
			t.Fatalf("nothing runs any more: %+v", v)
		}
		next := s.change(volumeType, s.refreshed(half), given{"instances": uris[1:]})
		s.isOn("moved on", machines[1])
		s.gone(volumeType, next)
	})
}

// A volume whose attaching was interrupted is this state's all the same, however
// often it is refreshed while the attach still runs: a configuration without it takes
// it off, and destroying it is no error.
func TestVolumeWhoseAttachingWasInterruptedIsStillOurs(t *testing.T) {
	const noneBefore, handsOff, withIt = "none before", "hands off before", "made with it"
	const takenOff, grown, letGo, destroyed, tainted = "taken off", "grown", "let go", "destroyed", "destroyed as tainted"
	for _, test := range []struct {
		start  string
		looks  []time.Duration // when the next run refreshes
		ending string
	}{
		{noneBefore, nil, destroyed},
		{noneBefore, []time.Duration{0}, takenOff},
		{handsOff, []time.Duration{0}, tainted},
		{handsOff, []time.Duration{0, time.Hour}, tainted},
		{noneBefore, nil, grown},
		{noneBefore, []time.Duration{0}, letGo},
		{withIt, []time.Duration{0, 2 * time.Hour}, takenOff},
		{withIt, []time.Duration{0}, tainted},
	} {
		t.Run(fmt.Sprint(test.start, test.looks, test.ending), func(t *testing.T) {
			onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
				uris, _ := s.two()
				prior, soon := s.wire.none(volumeType), time.Second
				switch {
				case test.start == noneBefore:
					prior = s.make(volumeType, given{"instances": []string{}})
				case test.start == handsOff:
					prior = s.make(volumeType, nil)
				case s.name == "hetzner":
					soon = 12 * time.Second // making it takes a while there
				}
				half := s.interrupted(prior, soon, given{"instances": uris[:1]})
				if v := s.one(); v.machine != "" || half.value.IsNull() {
					t.Fatalf("nothing runs any more: %+v", v)
				}
				for _, look := range test.looks {
					pass(look) // of the bubble's clock
					half = s.refreshed(half)
				}
				switch test.ending {
				case takenOff:
					next := s.change(volumeType, half, given{"instances": []string{}})
					pass(2 * time.Hour)
					next = s.change(volumeType, s.refreshed(next), given{"instances": []string{}})
					s.isOn(test.ending, "")
					half = next
				case grown: // by a plan that was made before the attach showed
					pass(time.Hour)
					half = s.change(volumeType, half, given{"instances": []string{}, "size_gib": 20})
					s.isOn(test.ending, "")
				case letGo: // hands off from now on, and it is ours to destroy all the same
					half = s.change(volumeType, half, nil)
					pass(time.Hour)
					half = s.refreshed(half)
				case tainted:
					half.private = nil // a core hands none over then
				}
				s.gone(volumeType, half)
			})
		})
	}
}

// Once the attach shows, the instance is among the recorded ones, and nothing is
// pending: a plan with it is idle, and another's attachment elsewhere is a stranger's.
func TestVolumeInterruptedAttachIsRecordedWhenItShows(t *testing.T) {
	onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		half := s.interrupted(s.make(volumeType, given{"instances": []string{}}), time.Second, given{"instances": uris[:1]})
		half = s.refreshed(half)
		if got := attributeOf(t, half, "attachments").String(); !strings.Contains(got, `"pending"`) || !strings.Contains(got, machines[0]) {
			t.Errorf("while it runs: %s", got)
		}
		pass(time.Hour)
		half = s.refreshed(half)
		if got := attributeOf(t, half, "instances"); !got.Equal(onInstances(uris[0])["instances"]) {
			t.Errorf("recorded %s", got)
		}
		if got := attributeOf(t, half, "attachments").String(); strings.Contains(got, `"pending"`) {
			t.Errorf("when it shows: %s", got)
		}
		planned, diags := s.wire.plan(volumeType, half, s.config(volumeType, given{"instances": uris[:1]}))
		if planned = done(t, planned, diags); !planned.value.Equal(half.value) {
			t.Errorf("planned %s", planned.value)
		}
	})
}

// What was asked for and never showed is forgotten after an hour: an attachment that
// shows then is a stranger's.
func TestVolumeAttachThatNeverShowsIsForgotten(t *testing.T) {
	onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		none := s.make(volumeType, given{"instances": []string{}})
		s.broken(emulator.Rule{
			Service: s.name, Method: "POST", Path: map[string]string{"hetzner": "/v1/volumes/*/actions/attach", "digitalocean": "/v2/volumes/*/actions"}[s.name],
			Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever,
		})
		failed := s.interrupted(none, 24*time.Hour, given{"instances": uris[:1]})
		for pause, want := range []bool{true, false} {
			pass(time.Duration(pause) * 2 * time.Hour)
			failed = s.refreshed(failed)
			if got := attributeOf(t, failed, "attachments").String(); strings.Contains(got, machines[0]) != want {
				t.Errorf("after %d times two hours: %s", pause, got)
			}
		}
		s.attach(s.one().id, machines[0])
		s.wire = s.world.wire()
		after, diags := s.wire.read(volumeType, failed)
		if !strings.Contains(warned(diags), "Attached outside") || !attributeOf(t, after, "instances").Equal(onInstances()["instances"]) {
			t.Errorf("warnings %q, recorded %s", warned(diags), after.value)
		}
	})
}

// A detachment that was interrupted ends by itself or by the next apply.
func TestVolumeWhoseDetachingWasInterruptedIsDetached(t *testing.T) {
	for _, refreshed := range []bool{false, true} {
		t.Run(fmt.Sprint("refreshed ", refreshed), func(t *testing.T) {
			onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
				uris, machines := s.two()
				half := s.interrupted(s.make(volumeType, given{"instances": uris[:1]}), time.Second, given{"instances": []string{}})
				if refreshed {
					half = s.refreshed(half)
				}
				half = s.change(volumeType, half, given{"instances": uris[1:]})
				s.isOn("moved on", machines[1])
				half = s.interrupted(half, time.Second, given{"instances": []string{}})
				if refreshed {
					half = s.refreshed(half)
				}
				s.gone(volumeType, half)
			})
		})
	}
}

// "A deleteWithInstance volume whose instance is being deleted is INVALID_STATE: it
// goes with the machine": destroying both at the same time deletes each once and
// fails with neither.
func TestVolumeThatGoesWithItsMachineIsDestroyedBesideIt(t *testing.T) {
	onBothClouds(t, 40*time.Second, func(t *testing.T, s *spec) {
		instance := s.make(instanceType, nil)
		volume := s.make(volumeType, given{"instances": []string{instance.text(t, "uri")}, "delete_with_instance": true})
		done := make(chan string)
		go func() {
			_, diags := s.wire.destroy(instanceType, instance)
			done <- errorsOf(diags)
		}()
		_, diags := s.wire.destroy(volumeType, volume)
		if problems := errorsOf(diags) + <-done; problems != "" {
			t.Error(problems)
		}
		if all := s.seen(); len(all) > 0 {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

// attributeOf is one of an object's attributes.
func attributeOf(t *testing.T, o object, name string) tftypes.Value {
	t.Helper()
	var values map[string]tftypes.Value
	if err := o.value.As(&values); err != nil {
		t.Fatal(err)
	}
	return values[name]
}
