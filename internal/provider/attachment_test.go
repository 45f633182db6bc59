// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

const attachmentType = "bettercompute_volume_attachment"

// volumeURI is the uri of a volume of the pool.
func (s *spec) volumeURI(name string) string {
	return strings.Replace(s.poolURI, "/web?", "/web/volumes/"+name+"?", 1)
}

// onInstance are the attributes of an attachment to an instance.
func onInstance(instance object, t *testing.T) given {
	t.Helper()
	return given{"instance": instance.text(t, "uri")}
}

// read reads a resource as the next run does.
func (s *spec) read(resource string, prior object) object {
	s.t.Helper()
	s.wire = s.world.wire()
	out, diags := s.wire.read(resource, prior)
	return done(s.t, out, diags)
}

// still fails unless a refresh and a further plan of an attachment change nothing.
func (s *spec) still(made object, more given) object {
	s.t.Helper()
	read := s.read(attachmentType, made)
	if !read.value.Equal(made.value) {
		s.t.Errorf("a refresh changed\n%s\nto\n%s", made.value, read.value)
	}
	planned, diags := s.wire.plan(attachmentType, read, s.config(attachmentType, more))
	if len(diags) > 0 || !planned.value.Equal(read.value) {
		s.t.Errorf("a further plan changes\n%s\nto\n%s: %s%s", read.value, planned.value, errorsOf(diags), warned(diags))
	}
	return read
}

func TestAttachmentFromFirstPlanToDestroy(t *testing.T) {
	onBothClouds(t, time.Minute, func(t *testing.T, s *spec) {
		// The first plan knows nothing of the instance.
		first, diags := s.wire.plan(attachmentType, s.wire.none(attachmentType), s.config(attachmentType, given{"instance": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)}))
		if len(diags) > 0 || first.text(t, "id") != "" {
			t.Errorf("planned %s: %s", first.value, errorsOf(diags))
		}
		volume := s.make(volumeType, nil)
		web := s.make(instanceType, nil)
		on := onInstance(web, t)
		planned, diags := s.wire.plan(attachmentType, s.wire.none(attachmentType), s.config(attachmentType, on))
		id := volume.text(t, "id") + "/" + web.text(t, "id")
		if len(diags) > 0 || planned.text(t, "device") != volume.text(t, "device") || planned.text(t, "id") != id || planned.text(t, "volume_id") != volume.text(t, "volume_id") {
			t.Errorf("planned %s: %s%s", planned.value, errorsOf(diags), warned(diags))
		}
		made := s.make(attachmentType, on)
		if made.text(t, "state") != "attached" || made.text(t, "machine_id") != web.text(t, "machine_id") || s.one().machine != web.text(t, "machine_id") {
			t.Errorf("recorded %s, the volume is %+v", made.value, s.one())
		}
		made = s.still(made, on)
		// The volume says nothing of it but where it is.
		s.settledVolume(volume, web.text(t, "machine_id"))
		s.gone(attachmentType, made)
		if is := s.one(); is.machine != "" {
			t.Errorf("the volume is %+v", is)
		}
		s.gone(volumeType, volume)
	})
}

// settledVolume fails unless a volume that says nothing of instances shows a machine and
// plans nothing.
func (s *spec) settledVolume(volume object, machine string) {
	s.t.Helper()
	read := s.refreshed(volume)
	planned, diags := s.wire.plan(volumeType, read, s.config(volumeType, nil))
	if len(diags) > 0 || !planned.value.Equal(read.value) || !strings.Contains(read.value.String(), `"machine_id":tftypes.String<"`+machine+`">`) {
		s.t.Errorf("the volume is %s, and planned as %s: %s", read.value, planned.value, warned(diags))
	}
}

// Made anew, the instance has another machine: the volume follows in place.
func TestAttachmentFollowsItsInstance(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.make(volumeType, nil)
		web := s.make(instanceType, nil)
		made := s.make(attachmentType, onInstance(web, t))
		s.gone(instanceType, web)
		web = s.make(instanceType, nil)
		on := onInstance(web, t)
		if replaced, diags := s.replaces(attachmentType, made, on); len(replaced)+len(diags) > 0 {
			t.Errorf("replaced for %v: %s%s", replaced, errorsOf(diags), warned(diags))
		}
		made = s.change(attachmentType, made, on)
		if s.one().machine != web.text(t, "machine_id") || made.text(t, "machine_id") != web.text(t, "machine_id") {
			t.Errorf("the volume is %+v", s.one())
		}
		made = s.still(made, on)
		// To another instance, from where this attachment has it.
		other := s.make(instanceType, given{"name": "web-1"})
		on = onInstance(other, t)
		s.wire = s.world.wire()
		made = s.change(attachmentType, made, on)
		if s.one().machine != other.text(t, "machine_id") {
			t.Errorf("the volume is %+v", s.one())
		}
		s.still(made, on)
	})
}

// Detached outside, it shows and is mended in place.
func TestAttachmentDetachedOutside(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.make(volumeType, nil)
		on := onInstance(s.make(instanceType, nil), t)
		made := s.make(attachmentType, on)
		s.attach(s.one().id, "")
		read := s.read(attachmentType, made)
		if read.text(t, "state") != "detached" {
			t.Errorf("read as %s", read.value)
		}
		made = s.change(attachmentType, read, on)
		if s.one().machine == "" {
			t.Error("it is still detached")
		}
		made = s.still(made, on)
		// Moved to another machine, it isn't taken from there.
		other := s.make(instanceType, given{"name": "web-1"})
		s.attach(s.one().id, other.text(t, "machine_id"))
		read = s.read(attachmentType, made)
		_, diags := s.wire.plan(attachmentType, read, s.config(attachmentType, on))
		if !strings.Contains(warned(diags), "Attached elsewhere") || errorsOf(diags) != "" {
			t.Errorf("planned with %s%s", warned(diags), errorsOf(diags))
		}
		_, diags = s.wire.apply(t.Context(), attachmentType, read, s.config(attachmentType, on))
		if !strings.Contains(errorsOf(diags), "CONFLICT") || s.one().machine != other.text(t, "machine_id") {
			t.Errorf("%s, the volume is %+v", errorsOf(diags), s.one())
		}
	})
}

// An attachment takes a volume from nobody.
func TestAttachmentTakesAVolumeFromNobody(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.make(volumeType, nil)
		web, other := s.make(instanceType, nil), s.make(instanceType, given{"name": "web-1"})
		s.attach(s.one().id, other.text(t, "machine_id"))
		s.wire = s.world.wire()
		on := onInstance(web, t)
		_, diags := s.wire.plan(attachmentType, s.wire.none(attachmentType), s.config(attachmentType, on))
		if !strings.Contains(warned(diags), "Attached elsewhere") || errorsOf(diags) != "" {
			t.Errorf("planned with %s%s", warned(diags), errorsOf(diags))
		}
		s.calledFor()
		made, diags := s.wire.apply(t.Context(), attachmentType, s.wire.none(attachmentType), s.config(attachmentType, on))
		if !made.value.IsNull() || !strings.Contains(errorsOf(diags), "CONFLICT") || len(s.calledFor()) > 0 || s.one().machine != other.text(t, "machine_id") {
			t.Errorf("%s, recorded %s", errorsOf(diags), made.value)
		}
	})
}

// A volume has instances or an attachment, never both, and one attachment.
func TestAttachmentExcludesInstances(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		web, other := s.make(instanceType, nil), s.make(instanceType, given{"name": "web-1"})
		volume := s.make(volumeType, nil)
		on := onInstance(web, t)
		plan := func(resource string, prior object, more given) string {
			_, diags := s.wire.plan(resource, prior, s.config(resource, more))
			return errorsOf(diags)
		}
		none := s.wire.none(attachmentType)
		for _, instances := range [][]string{{}, {web.text(t, "uri")}} {
			s.wire = s.world.wire()
			plan(volumeType, volume, given{"instances": instances})
			if got := plan(attachmentType, none, on); !strings.Contains(got, "CONFLICT") || !strings.Contains(got, "instances") {
				t.Errorf("instances = %v first: %q", instances, got)
			}
			s.wire = s.world.wire()
			plan(attachmentType, none, on)
			if got := plan(volumeType, volume, given{"instances": instances}); !strings.Contains(got, "CONFLICT") {
				t.Errorf("instances = %v second: %q", instances, got)
			}
		}
		s.wire = s.world.wire()
		plan(attachmentType, none, on)
		if got := plan(attachmentType, none, onInstance(other, t)); !strings.Contains(got, "CONFLICT") {
			t.Errorf("two attachments: %q", got)
		}
		s.wire = s.world.wire()
		plan(volumeType, volume, given{"delete_with_instance": true})
		if got := plan(attachmentType, none, on); !strings.Contains(got, "delete_with_instance") {
			t.Errorf("it goes with the instance: %q", got)
		}
		// Of another state it is seen in the cloud.
		s.change(volumeType, volume, given{"delete_with_instance": true})
		s.wire = s.world.wire()
		if got := plan(attachmentType, none, on); !strings.Contains(got, "delete_with_instance") {
			t.Errorf("it goes with the instance, by its marks: %q", got)
		}
	})
}

// From instances to an attachment, and back, the volume stays where it is.
func TestAttachmentAndInstancesTakeOverFromEachOther(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		web := s.make(instanceType, nil)
		named := given{"instances": []string{web.text(t, "uri")}}
		volume := s.make(volumeType, named)
		on := onInstance(web, t)
		s.wire = s.world.wire()
		s.calledFor()
		volume = s.change(volumeType, volume, nil)
		made := s.make(attachmentType, on)
		if calls := s.calledFor(); len(calls) > 0 || s.one().machine == "" {
			t.Errorf("to an attachment it took %v", calls)
		}
		made = s.still(made, on)
		s.wire = s.world.wire()
		s.ends(attachmentType, made)
		s.change(volumeType, volume, named)
		s.gone(attachmentType, made)
		if calls := s.calledFor(); len(calls) > 0 || s.one().machine == "" {
			t.Errorf("to instances it took %v", calls)
		}
	})
}

// A volume that is made anew takes its attachment along: it goes before the old volume
// does, and comes after the new one.
func TestAttachmentOfAVolumeThatIsReplaced(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		fs := given{"filesystem": "ext4"}
		volume := s.make(volumeType, fs)
		on := onInstance(s.make(instanceType, nil), t)
		made := s.make(attachmentType, on)
		s.wire = s.world.wire()
		s.wire.plan(volumeType, volume, s.config(volumeType, given{"filesystem": "xfs"}))
		replaced, diags := s.replaces(attachmentType, made, on)
		if len(replaced) != 1 || !strings.Contains(replaced[0], "volume_id") || len(diags) > 0 {
			t.Errorf("replaced for %v: %s", replaced, errorsOf(diags))
		}
		// As a core does it.
		s.gone(attachmentType, made)
		s.gone(volumeType, volume)
		s.make(volumeType, given{"filesystem": "xfs"})
		made = s.make(attachmentType, on)
		s.still(made, on)
	})
}

// A volume that is gone plans nothing for its attachment, and can be made anew.
func TestAttachmentOfAVolumeThatIsGone(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		volume := s.make(volumeType, nil)
		web := s.make(instanceType, nil)
		on := onInstance(web, t)
		made := s.make(attachmentType, on)
		s.attach(s.one().id, "")
		s.deleteOutside()
		lost := s.refreshed(volume)
		read := s.read(attachmentType, made)
		if read.text(t, "state") != "error" {
			t.Errorf("read as %s", read.value)
		}
		s.wire.plan(volumeType, lost, s.config(volumeType, nil))
		planned, diags := s.wire.plan(attachmentType, read, s.config(attachmentType, on))
		if len(diags) > 0 || !planned.value.Equal(read.value) {
			t.Errorf("planned %s: %s", planned.value, errorsOf(diags))
		}
		s.gone(attachmentType, read)
	})
}

// A volume that is renamed keeps its attachment, in place and without a call.
func TestAttachmentOfAVolumeThatIsRenamed(t *testing.T) {
	s := newSpec(t, specClouds()[0], 0)
	volume := s.make(volumeType, nil)
	web := s.make(instanceType, nil)
	made := s.make(attachmentType, onInstance(web, t))
	s.wire = s.world.wire()
	renamed := given{"name": "renamed"}
	planned, _ := s.wire.plan(volumeType, volume, s.config(volumeType, renamed))
	on := given{"volume": planned.text(t, "uri"), "instance": web.text(t, "uri")}
	if replaced, diags := s.replaces(attachmentType, made, on); len(replaced)+len(diags) > 0 {
		t.Errorf("replaced for %v: %s", replaced, errorsOf(diags))
	}
	plannedAttachment, _ := s.wire.plan(attachmentType, made, s.config(attachmentType, on))
	if plannedAttachment.text(t, "volume_id") != made.text(t, "volume_id") || plannedAttachment.text(t, "state") != "attached" {
		t.Errorf("planned %s", plannedAttachment.value)
	}
	s.change(volumeType, volume, renamed)
	s.calledFor()
	made = s.change(attachmentType, made, on)
	if calls := s.calledFor(); len(calls) > 0 {
		t.Errorf("it took %v", calls)
	}
	s.still(made, on)
}

// An apply that is interrupted records the attachment, and the next one finishes it.
func TestAttachmentInterrupted(t *testing.T) {
	onBothClouds(t, 15*time.Minute, func(t *testing.T, s *spec) {
		s.make(volumeType, nil)
		on := onInstance(s.make(instanceType, nil), t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		half, diags := s.wire.apply(ctx, attachmentType, s.wire.none(attachmentType), s.config(attachmentType, on))
		if errorsOf(diags) != "" || half.value.IsNull() || half.text(t, "state") != "pending" {
			t.Fatalf("%s, recorded %s", errorsOf(diags), half.value)
		}
		pass(2 * time.Hour)
		made := s.change(attachmentType, s.read(attachmentType, half), on)
		if s.one().machine == "" {
			t.Error("it isn't attached")
		}
		s.still(made, on)
	})
}

// What is refused outright is not recorded.
func TestAttachmentInputIsChecked(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.make(volumeType, nil)
		web := s.make(instanceType, nil)
		far := s.make(instanceType, given{"name": "far", "region": s.elsewhere})
		none := s.wire.none(attachmentType)
		for what, test := range map[string]struct {
			more  given
			parts []string
		}{
			"an id":           {given{"volume": "pvol_x", "instance": web.text(t, "uri")}, []string{"INVALID_INPUT", "volume"}},
			"not an instance": {given{"instance": s.volumeURI("data")}, []string{"INVALID_INPUT", "instance"}},
			"another region":  {onInstance(far, t), []string{"INVALID_INPUT", "region"}},
			"another account": {given{"instance": strings.Replace(web.text(t, "uri"), "/main/", "/other/", 1)}, []string{"INVALID_INPUT", "account"}},
		} {
			s.wire = s.world.wire()
			got := s.problems(attachmentType, none, test.more)
			for _, part := range test.parts {
				if !strings.Contains(got, part) {
					t.Errorf("%s: no %q in %q", what, part, got)
				}
			}
		}
		// No such volume, and no such machine: the apply says so.
		for what, more := range map[string]given{
			"no volume":  {"volume": s.volumeURI("none"), "instance": web.text(t, "uri")},
			"no machine": {"instance": strings.Replace(web.text(t, "uri"), "/web-0/"+web.text(t, "machine_id"), "/none", 1)},
		} {
			s.wire = s.world.wire()
			made, diags := s.wire.apply(t.Context(), attachmentType, none, s.config(attachmentType, more))
			if !made.value.IsNull() || errorsOf(diags) == "" {
				t.Errorf("%s: %s, recorded %s", what, errorsOf(diags), made.value)
			}
		}
	})
}

// A share is attached to a network.
func TestShareHasNoAttachment(t *testing.T) {
	onShares(t, func(t *testing.T, s *spec, vpc string) {
		s.make(volumeType, s.share(vpc, nil))
		web := s.make(instanceType, given{"region": oceanShareRegion, "network_id": vpc})
		if got := s.problems(attachmentType, s.wire.none(attachmentType), onInstance(web, t)); !strings.Contains(got, "UNSUPPORTED") {
			t.Errorf("got %q", got)
		}
	})
}

func TestAttachmentImport(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		volume := s.make(volumeType, nil)
		web := s.make(instanceType, nil)
		on := onInstance(web, t)
		load := func(id string) (object, string) {
			resp, err := s.wire.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: attachmentType, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.ImportedResources) == 0 || errorsOf(resp.Diagnostics) != "" {
				return object{}, errorsOf(resp.Diagnostics)
			}
			got := resp.ImportedResources[0]
			return object{s.wire.value(attachmentType, got.State), got.Private}, ""
		}
		id := volume.text(t, "uri") + "|" + web.text(t, "uri")
		if _, problems := load(id); !strings.Contains(problems, "NOT_FOUND") {
			t.Errorf("not attached: %q", problems)
		}
		if _, problems := load(volume.text(t, "uri")); !strings.Contains(problems, "INVALID_INPUT") {
			t.Errorf("one uri: %q", problems)
		}
		made := s.make(attachmentType, on)
		imported, problems := load(id)
		if problems != "" || !s.read(attachmentType, imported).value.Equal(made.value) {
			t.Errorf("%s, imported %s", problems, imported.value)
		}
		s.still(imported, on)
	})
}

// A lost answer, or a refusal that passes, leaves nothing behind.
func TestAttachmentWithALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range specClouds() {
			s := newSpec(t, c, 0)
			s.make(volumeType, nil)
			on := onInstance(s.make(instanceType, nil), t)
			path := "/v1/volumes/*/actions/attach"
			if s.name == "digitalocean" {
				path = "/v2/volumes/*/actions"
			}
			s.broken(emulator.Rule{Service: s.name, Method: "POST", Path: path, Kind: emulator.KindLoseAnswer, Nth: 1, Times: 1})
			made := s.make(attachmentType, on)
			s.gone(attachmentType, s.still(made, on))
		}
	})
}
