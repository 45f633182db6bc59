// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// "Every call … returns at once, usually pending": an apply waits until the volume is
// ready; one that the user ends records it pending, and the next apply goes on.
func TestVolumeIsPendingUntilItIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// DigitalOcean's block volumes are ready when they are made.
		s := newSpec(t, specClouds()[0], time.Hour)
		half := s.interrupted(s.wire.none(volumeType), time.Second, nil)
		if got := half.text(t, "state"); got != "pending" || half.text(t, "message") == "" {
			t.Errorf("recorded %s", half.value)
		}
		whole := s.change(volumeType, s.refreshed(half), nil)
		if whole.text(t, "state") != "ready" || whole.text(t, "message") != "" || whole.text(t, "volume_id") != half.text(t, "volume_id") {
			t.Errorf("recorded %s", whole.value)
		}
	})
}

// "state … or error, with the provider's message".
func TestVolumeInErrorShowsAMessage(t *testing.T) {
	onShares(t, func(t *testing.T, s *spec, vpc string) {
		made := s.make(volumeType, s.share(vpc, nil))
		for status, part := range map[string]string{"FAILED": "could not make", "INACTIVE": "no VPC"} {
			s.cloud.SetShareStatus(s.oneShare().ID, status)
			if is := s.refreshed(made); is.text(t, "state") != "error" || !strings.Contains(is.text(t, "message"), part) {
				t.Errorf("%s: %s", status, is.value)
			}
		}
	})
}

// "one deleted at the provider outside better-compute goes to error and is never
// created again (its data is gone; delete it)".
func TestVolumeDeletedOutsideGoesToErrorAndIsNeverCreatedAgain(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		made := s.make(volumeType, nil)
		s.deleteOutside()
		lost := s.refreshed(made)
		if lost.text(t, "state") != "error" || lost.text(t, "message") == "" {
			t.Errorf("recorded %s", lost.value)
		}
		s.calledFor()
		for _, more := range []given{nil, {"size_gib": 20}, {"name": "other", "region": s.elsewhere}, {"filesystem": "xfs"}, {"instances": []string{}}} {
			if after := s.change(volumeType, lost, more); after.text(t, "state") != "error" || after.text(t, "volume_id") != made.text(t, "volume_id") {
				t.Errorf("%v: %s", more, after.value)
			}
		}
		s.gone(volumeType, lost)
		if calls := s.calledFor(); len(calls) > 0 || len(s.seen()) > 0 {
			t.Errorf("it took %v; the cloud has %+v", calls, s.seen())
		}
	})
}

func (s *spec) deleteOutside() {
	s.t.Helper()
	for _, v := range s.hetzner.Volumes() {
		s.hetzner.DeleteVolume(v.ID)
	}
	for _, v := range s.cloud.Volumes() {
		s.cloud.DeleteVolume(v.ID)
	}
}

// "its device, the path the guest sees", "observed size", "attachment (instanceId,
// state, desiredState)": of a block volume; it has no mount.
func TestVolumeShowsItsDeviceSizeAndAttachment(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		instance := s.make(instanceType, nil)
		made := s.make(volumeType, given{"instances": []string{instance.text(t, "uri")}})
		device := map[string]string{
			"hetzner": `^/dev/disk/by-id/scsi-0HC_Volume_\d+$`, "digitalocean": `^/dev/disk/by-id/scsi-0DO_Volume_data$`,
		}[s.name]
		if !regexp.MustCompile(device).MatchString(made.text(t, "device")) {
			t.Errorf("the device is %q", made.text(t, "device"))
		}
		all := made.value.String()
		for _, part := range []string{
			`"observed_size_gib":tftypes.Number<"10">`, `"desired_state":tftypes.String<"attached">`, `"state":tftypes.String<"attached">`,
			`"instance_id":tftypes.String<"` + instance.text(t, "id"), `"machine_id":tftypes.String<"` + instance.text(t, "machine_id"),
		} {
			if !strings.Contains(all, part) {
				t.Errorf("no %s in %s", part, all)
			}
		}
	})
}

// "Grows the volume to sizeGiB … the same size returns it unchanged": in place,
// attached or not, in one call.
func TestVolumeResizeGrowsInPlace(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		instance := s.make(instanceType, nil)
		on := []string{instance.text(t, "uri")}
		made := s.make(volumeType, given{"instances": on})
		before := s.one()
		s.calledFor()
		made = s.change(volumeType, made, given{"instances": on, "size_gib": 10})
		if calls := s.calledFor(); len(calls) > 0 {
			t.Errorf("the same size took %v", calls)
		}
		made = s.change(volumeType, made, given{"instances": on, "size_gib": 20})
		if calls := s.calledFor(); len(calls) != 1 {
			t.Errorf("growing took %v", calls)
		}
		after := s.one()
		if before.size = 20; after != before || made.text(t, "state") != "ready" {
			t.Errorf("the volume is %+v, want %+v", after, before)
		}
	})
}

// "A smaller size is INVALID_INPUT", before any call.
func TestVolumeResizeToASmallerSizeIsInvalidInput(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		made := s.make(volumeType, given{"size_gib": 20})
		s.refusedOf("smaller", made, given{"size_gib": 19}, "INVALID_INPUT: ", "20 GiB and can't shrink to 19", "reason: size")
	})
	onShares(t, func(_ *testing.T, s *spec, vpc string) {
		made := s.make(volumeType, s.share(vpc, given{"size_gib": 60}))
		s.refusedOf("a smaller share", made, s.share(vpc, nil), "INVALID_INPUT: ", "60 GiB and can't shrink to 50", "reason: size")
	})
}

// "[filesystem] is never changed later", "the filesystem is not grown: the guest does
// that": what the guest does to it is no drift.
func TestVolumeFilesystemIsTheGuestsOnceItIsMade(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		made := s.make(volumeType, given{"filesystem": "ext4"})
		s.calledFor()
		grown := s.change(volumeType, made, given{"filesystem": "ext4", "size_gib": 20})
		if calls := s.calledFor(); len(calls) != 1 {
			t.Errorf("growing took %v", calls)
		}
		s.reformatted.Store(true)
		if is := s.refreshed(grown); !is.value.Equal(grown.value) {
			t.Errorf("a refresh changed\n%s\nto\n%s", grown.value, is.value)
		}
	})
}

// "A volume has at most 25 snapshots that are not deleted (QUOTA_EXCEEDED); the name
// is unique among them (CONFLICT)": shared volumes' too.
func TestVolumeHasAtMost25SnapshotsOfUniqueNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []string{"block", "shared"} {
			s := newSpec(t, specClouds()[1], 0)
			more := given{}
			if kind == "shared" {
				more = s.share(s.cloud.AddVPC("files", oceanShareRegion), nil)
			}
			s.make(volumeType, more)
			have, taken := 0, "s-7"
			if kind == "block" { // one by hand counts, and has its name
				v := s.one()
				s.makeSnapshot(backends.Volume{ID: v.id, Name: v.name, Region: v.region}, "by-hand", false)
				have, taken = 1, "by-hand"
			}
			for i := have; i < backends.MaxSnapshots; i++ {
				s.make(snapshotType, given{"name": fmt.Sprintf("s-%d", i)})
			}
			s.calledFor()
			s.wire = s.world.wire()
			_, diags := s.wire.apply(t.Context(), snapshotType, s.wire.none(snapshotType), s.config(snapshotType, nil))
			if problems := errorsOf(diags); !strings.HasPrefix(problems, "QUOTA_EXCEEDED: ") {
				t.Errorf("%s: one more: %s", kind, problems)
			}
			if calls := s.calledFor(); len(calls) > 0 {
				t.Errorf("%s: it took %v", kind, calls)
			}
			// A name that someone else's snapshot has is refused by the plan, one of the same
			// key by the apply.
			s.wire = s.world.wire()
			problems := s.problems(snapshotType, s.wire.none(snapshotType), given{"name": taken})
			if kind == "shared" {
				_, diags = s.wire.apply(t.Context(), snapshotType, s.wire.none(snapshotType), s.config(snapshotType, given{"name": taken}))
				problems = errorsOf(diags)
			}
			if calls := s.calledFor(); len(calls) > 0 || !strings.HasPrefix(problems, "CONFLICT: ") {
				t.Errorf("%s: a second one: %s; it took %v", kind, problems, calls)
			}
		}
	})
}

// name, of a snapshot: "at most 42 characters; matches
// ^[a-z]([-a-z0-9]{0,40}[a-z0-9])?$".
func TestVolumeSnapshotNameHasTheSpecificationsForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 0)
		s.make(volumeType, nil)
		for _, name := range []string{"", "First", "1st", "first-", "fi_rst", strings.Repeat("a", 43)} {
			if problems := s.problems(snapshotType, s.wire.none(snapshotType), given{"name": name}); !strings.HasPrefix(problems, "INVALID_INPUT: A snapshot name is") {
				t.Errorf("%q: %s", name, problems)
			}
		}
		s.make(snapshotType, given{"name": strings.Repeat("a", 42)})
	})
}

// "A volume any instance still has attached is INVALID_STATE (detach it first)": the
// instances that the state names are detached first; any other one keeps it.
func TestVolumeThatAnotherInstanceHasIsNotDeleted(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		uris, machines := s.two()
		made := s.make(volumeType, given{"instances": uris[:1]})
		s.attach(s.one().id, machines[1])
		s.wire = s.world.wire()
		_, diags := s.wire.destroy(volumeType, made)
		if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_STATE: ") || !strings.Contains(problems, machines[1]) {
			t.Errorf("destroying: %s", problems)
		}
		s.isOn("not deleted", machines[1])
		s.attach(s.one().id, machines[0])
		s.wire = s.world.wire()
		s.calledFor()
		s.gone(volumeType, made)
		if calls := s.calledFor(); len(calls) != 2 || !strings.Contains(calls[0], "/actions") || !strings.HasPrefix(calls[1], "DELETE ") {
			t.Errorf("it took %v", calls)
		}
	})
}

// "one whose create answer was lost is looked up by name (never created to be
// deleted)": by its key; the volume is found, whatever lists lag behind.
func TestVolumeWhoseCreateAnswerWasLostIsLookedUp(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.broken(emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindLoseAnswer, Times: 1})
		s.broken(emulator.Rule{Method: "GET", Path: "/volumes", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(50 * time.Millisecond), Times: emulator.Forever})
		made := s.make(volumeType, nil)
		if v := s.one(); v.id != made.text(t, "volume_id") {
			t.Errorf("the cloud has %+v, recorded %s", v, made.value)
		}
		if posts := slices.DeleteFunc(s.calledFor(), func(c string) bool { return !strings.HasPrefix(c, http.MethodPost) }); len(posts) != 1 {
			t.Errorf("it took %v", posts)
		}
		s.gone(volumeType, made)
	})
}

// "Deleting a volume being deleted returns it": one that is gone, or that someone else
// deletes at this moment, is destroyed all the same.
func TestVolumeThatIsDeletedAlreadyIsDestroyed(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		made := s.make(volumeType, nil)
		s.deleteOutside()
		s.gone(volumeType, made)
		made = s.make(volumeType, nil)
		s.broken(emulator.Rule{Method: "DELETE", Path: "/volumes/*", Kind: emulator.KindLoseAnswer, Times: 1})
		s.wire = s.world.wire()
		s.gone(volumeType, made)
		if all := s.seen(); len(all) > 0 {
			t.Errorf("the cloud has %+v", all)
		}
	})
}

// "mount (source, the NFS source <host>:<path> a guest mounts, and type nfs4) once the
// provider reports one".
func TestVolumeSharedShowsItsMountOnceTheProviderReportsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 10*time.Minute)
		vpc := s.cloud.AddVPC("files", oceanShareRegion)
		half := s.interrupted(s.wire.none(volumeType), time.Second, s.share(vpc, nil))
		if all := half.value.String(); half.text(t, "state") != "pending" || strings.Contains(all, "nfs4") {
			t.Errorf("recorded %s", all)
		}
		whole := s.change(volumeType, s.refreshed(half), s.share(vpc, nil))
		if all := whole.value.String(); !regexp.MustCompile(`"source":tftypes.String<"[0-9.]+:/[^"]+">`).MatchString(all) || !strings.Contains(all, `"type":tftypes.String<"nfs4">`) {
			t.Errorf("recorded %s", all)
		}
		if got := whole.text(t, "network_id"); got != vpc || whole.text(t, "device") != "" {
			t.Errorf("the network is %s, the device %q", got, whole.text(t, "device"))
		}
	})
}
