// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// two makes two instances and returns their uris and machines.
func (s *spec) two() (uris, machines []string) {
	for _, name := range []string{"web-0", "web-1"} {
		made := s.make(instanceType, given{"name": name})
		uris, machines = append(uris, made.text(s.t, "uri")), append(machines, made.text(s.t, "machine_id"))
	}
	return uris, machines
}

// isOn fails unless the volume is attached to a machine; "" is none.
func (s *spec) isOn(what, machine string) {
	s.t.Helper()
	if v := s.one(); v.machine != machine {
		s.t.Errorf("%s: the volume is %+v, it is to be on %q", what, v, machine)
	}
}

// "Attaches the volume to an instance …; the reconciler attaches it at the provider
// without a reboot": nothing is asked of the machine.
func TestVolumeAttachingIsWithoutAReboot(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		made := s.make(volumeType, nil)
		s.calledFor()
		made = s.change(volumeType, made, given{"instances": uris[:1]})
		s.isOn("attached", machines[0])
		calls := s.calledFor()
		s.change(volumeType, made, given{"instances": []string{}})
		s.isOn("detached", "")
		if calls = append(calls, s.calledFor()...); len(calls) != 2 || slices.ContainsFunc(calls, func(c string) bool { return !strings.Contains(c, "/volumes/ID/actions") }) {
			t.Errorf("it took %v", calls)
		}
	})
}

// "Attaching it again to the same instance returns it unchanged": without a call,
// however its uri is spelled.
func TestVolumeAttachingItAgainChangesNothing(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		made := s.make(volumeType, given{"instances": uris[:1]})
		s.calledFor()
		short := strings.Replace(s.poolURI, "/web?", "/web/instances/web-0?", 1)
		for _, again := range []string{uris[0], short} {
			made = s.change(volumeType, made, given{"instances": []string{again}})
		}
		s.isOn("again", machines[0])
		if calls := s.calledFor(); len(calls) > 0 {
			t.Errorf("it took %v", calls)
		}
	})
}

// "A block volume on another instance is CONFLICT (detach it first)": the plan that
// names another instance is the consent to detach it, from what the plan showed.
func TestVolumeOnAnotherInstanceIsAConflictUnlessThePlanShowedIt(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		made := s.make(volumeType, given{"instances": []string{}})
		s.attach(s.one().id, machines[1])
		after, diags := s.world.wire().apply(t.Context(), volumeType, made, s.config(volumeType, given{"instances": uris[:1]}))
		if problems := errorsOf(diags); !strings.HasPrefix(problems, "CONFLICT: ") || !strings.Contains(problems, machines[1]) {
			t.Errorf("a plan that showed nothing: %s", problems)
		}
		s.isOn("after the conflict", machines[1])
		s.calledFor()
		s.change(volumeType, s.refreshed(after), given{"instances": uris[:1]})
		s.isOn("moved", machines[0])
		if got := len(s.calledFor()); got != 2 {
			t.Errorf("moving took %d calls", got)
		}
	})
}

// "a disk on one instance at a time".
func TestVolumeOfKindBlockIsOnAtMostOneInstance(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		uris, _ := s.two()
		s.refused("two", given{"instances": uris}, "INVALID_INPUT: ", "at most one")
	})
}

// "for a block volume, naming an instance it is not on changes nothing"; "a volume not
// attached to that instance (or to anything) is returned as it is": what is detached
// already, in the cloud, costs no call and no error.
func TestVolumeThatIsDetachedAlreadyIsReturnedAsItIs(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		uris, _ := s.two()
		made := s.make(volumeType, given{"instances": uris[:1]})
		s.attach(s.one().id, "")
		s.calledFor()
		s.wire = s.world.wire()
		// Planned before the detachment was seen.
		s.change(volumeType, made, given{"instances": []string{}})
		s.isOn("detached", "")
		if calls := s.calledFor(); len(calls) > 0 {
			t.Errorf("it took %v", calls)
		}
	})
}

// "otherwise deleting the instance only detaches it".
func TestVolumeIsOnlyDetachedByDeletingItsInstance(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		instance := s.make(instanceType, nil)
		made := s.make(volumeType, given{"instances": []string{instance.text(t, "uri")}})
		before := s.one()
		s.gone(instanceType, instance)
		s.isOn("without its instance", "")
		if after := s.refreshed(made); s.one().id != before.id || after.text(t, "state") != "ready" {
			t.Errorf("the volume was %+v and is %+v: %s", before, s.one(), after.value)
		}
	})
}

// "deleteWithInstance: true deletes the volume with the instance it is attached to (on
// DigitalOcean, the Droplet's selective destroy names it)": so do its detachment from
// it by a plan, since the CLIs destroy an instance first; see the tests of lost data.
func TestVolumeWithDeleteWithInstanceIsDeletedWithIt(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		instance := s.make(instanceType, nil)
		on := given{"instances": []string{instance.text(t, "uri")}, "delete_with_instance": true}
		s.make(volumeType, on)
		s.make(volumeType, given{"name": "stays", "instances": on["instances"]})
		s.make(volumeType, given{"name": "elsewhere", "delete_with_instance": true})
		s.calledFor()
		s.gone(instanceType, instance)
		var left []string
		for _, v := range s.seen() {
			left = append(left, v.name)
		}
		if slices.Sort(left); !slices.Equal(left, []string{"elsewhere", "stays"}) {
			t.Errorf("left are %v", left)
		}
		want := map[string]string{
			"hetzner":      "[DELETE /v1/servers/ID DELETE /v1/volumes/ID]",
			"digitalocean": "[DELETE /v2/droplets/ID/destroy_with_associated_resources/selective]",
		}[s.name]
		if got := fmt.Sprint(s.calledFor()); got != want {
			t.Errorf("it took %s, want %s", got, want)
		}
	})
}

// Pending events and locks are waited out, for attaching as for detaching.
func TestVolumeAttachingWaitsForWhatRunsOnTheMachine(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		kind := map[string]emulator.Kind{"hetzner": emulator.KindLocked, "digitalocean": emulator.KindPendingEvent}[s.name]
		uris, machines := s.two()
		made := s.make(volumeType, nil)
		s.broken(emulator.Rule{Method: "POST", Path: "/volumes/*/actions*", Kind: kind, Times: 2})
		made = s.change(volumeType, made, given{"instances": uris[:1]})
		s.isOn("attached", machines[0])
		s.broken(emulator.Rule{Method: "POST", Path: "/volumes/*/actions*", Kind: kind, Times: 2})
		s.change(volumeType, made, given{"instances": []string{}})
		s.isOn("detached", "")
	})
}
