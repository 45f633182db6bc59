// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func labelsValue(labels map[string]string) tftypes.Value {
	values := map[string]tftypes.Value{}
	for k, v := range labels {
		values[k] = tftypes.NewValue(tftypes.String, v)
	}
	return tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, values)
}

// labelled are the labels or tags of the one volume that aren't marks, as key:value.
func (s *spec) labelled() []string {
	s.t.Helper()
	var out []string
	for _, v := range s.hetzner.Volumes() {
		for k, value := range v.Labels {
			out = append(out, strings.TrimSuffix(k+":"+value, ":"))
		}
	}
	for _, v := range s.cloud.Volumes() {
		out = append(out, v.Tags...)
	}
	out = slices.DeleteFunc(out, func(l string) bool { return strings.HasPrefix(l, "better-compute") })
	slices.Sort(out)
	return out
}

// label puts a label on the one volume behind the provider's back.
func (s *spec) label(key, value string) {
	s.t.Helper()
	for _, v := range s.hetzner.Volumes() {
		labels := maps.Clone(v.Labels)
		labels[key] = value
		s.hetzner.SetVolumeLabels(v.ID, labels)
	}
	for _, v := range s.cloud.Volumes() {
		s.cloud.SetVolumeTags(v.ID, append(slices.Clone(v.Tags), key+":"+value)...)
	}
}

// shielded tells whether the one volume has deletion protection in the cloud.
func (s *spec) shielded() bool {
	for _, v := range s.hetzner.Volumes() {
		return v.Protected
	}
	for _, v := range s.cloud.Volumes() {
		return slices.Contains(v.Tags, "better-compute:protected")
	}
	return false
}

// ends is the plan of a destruction.
func (s *spec) ends(resource string, prior object) []*tfprotov6.Diagnostic {
	s.t.Helper()
	none := s.wire.dynamic(s.wire.types[resource], s.wire.none(resource).value)
	resp, err := s.wire.server.PlanResourceChange(s.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: s.wire.dynamic(s.wire.types[resource], prior.value), PriorPrivate: prior.private,
		ProposedNewState: none, Config: none, ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.Diagnostics
}

// replaces are the attributes that make the plan of a change a replacement.
func (s *spec) replaces(resource string, prior object, more given) ([]string, []*tfprotov6.Diagnostic) {
	s.t.Helper()
	config, typ := s.config(resource, more), s.wire.types[resource]
	resp, err := s.wire.server.PlanResourceChange(s.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: s.wire.dynamic(typ, prior.value), PriorPrivate: prior.private,
		ProposedNewState: s.wire.dynamic(typ, s.wire.proposed(resource, prior.value, config)), Config: s.wire.dynamic(typ, config),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, p := range resp.RequiresReplace {
		out = append(out, p.String())
	}
	return out, resp.Diagnostics
}

// settledAs fails unless a refresh and a further plan change nothing.
func (s *spec) settledAs(made object, more given) object {
	s.t.Helper()
	read := s.refreshed(made)
	if !read.value.Equal(made.value) {
		s.t.Errorf("a refresh changed\n%s\nto\n%s", made.value, read.value)
	}
	planned, diags := s.wire.plan(volumeType, read, s.config(volumeType, more))
	if len(diags) > 0 || !planned.value.Equal(read.value) {
		s.t.Errorf("a further plan changes\n%s\nto\n%s: %s%s", read.value, planned.value, errorsOf(diags), warned(diags))
	}
	return read
}

func (s *spec) poolID() string {
	s.t.Helper()
	ref, err := reference.ParseKind(s.clouds, reference.KindPool, s.poolURI)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref.PoolID()
}

// A name that can be changed is changed in place: the data, the claim and where it is
// attached stay, the id and the uri are known in the plan. Elsewhere it is a replacement,
// and the plan says so.
func TestVolumeRename(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		web := s.make(instanceType, nil)
		on := given{"instances": []string{web.text(t, "uri")}, "filesystem": "ext4"}
		made := s.make(volumeType, on)
		before := s.one()
		renamed := given{"name": "renamed", "instances": on["instances"], "filesystem": "ext4"}
		replaced, diags := s.replaces(volumeType, made, renamed)
		if s.name == "digitalocean" {
			if len(replaced) != 1 || !strings.Contains(replaced[0], "name") || !strings.Contains(warned(diags), `The volume's data is lost: "data"`) {
				t.Errorf("replaced for %v: %s", replaced, warned(diags))
			}
			return
		}
		if len(replaced) > 0 || len(diags) > 0 {
			t.Fatalf("replaced for %v: %s%s", replaced, warned(diags), errorsOf(diags))
		}
		planned, _ := s.wire.plan(volumeType, made, s.config(volumeType, renamed))
		id := reference.VolumeID(s.poolID(), "renamed")
		uri := strings.Replace(made.text(t, "uri"), "/data?", "/renamed?", 1)
		if planned.text(t, "id") != id || planned.text(t, "uri") != uri || planned.text(t, "claim") != made.text(t, "claim") || planned.text(t, "device") != made.text(t, "device") {
			t.Errorf("planned %s", planned.value)
		}
		after := s.change(volumeType, made, renamed)
		if after.text(t, "id") != id || after.text(t, "uri") != uri || after.text(t, "claim") != made.text(t, "claim") {
			t.Errorf("recorded %s", after.value)
		}
		want := before
		want.name = "renamed"
		if is := s.one(); is != want {
			t.Errorf("the volume was %+v and is %+v", before, is)
		}
		after = s.settledAs(after, renamed)
		s.gone(volumeType, after)
	})
}

// A rename that was cut off between the cloud and the state is finished by the next
// apply, taken back by it, or the volume is deleted: it is ours by its claim.
func TestVolumeRenameThatWasNotRecorded(t *testing.T) {
	s := newSpec(t, specClouds()[0], 0)
	more := given{"name": "renamed", "filesystem": "ext4"}
	for name, next := range map[string]func(t *testing.T, read object){
		"finished": func(t *testing.T, read object) {
			t.Helper()
			s.settledAs(s.change(volumeType, read, more), more)
			if is := s.one(); is.name != "renamed" {
				t.Errorf("the volume is %+v", is)
			}
		},
		"taken back": func(t *testing.T, read object) {
			t.Helper()
			back := given{"filesystem": "ext4"}
			s.settledAs(s.change(volumeType, read, back), back)
			if is := s.one(); is.name != "data" {
				t.Errorf("the volume is %+v", is)
			}
		},
		"destroyed": func(t *testing.T, read object) {
			t.Helper()
			s.gone(volumeType, read)
			if left := s.seen(); len(left) > 0 {
				t.Errorf("left are %+v", left)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s = newSpec(t, specClouds()[0], 0)
			made := s.make(volumeType, given{"filesystem": "ext4"})
			s.change(volumeType, made, more) // and the state is lost
			read := s.refreshed(made)
			if read.text(t, "name") != "data" || read.text(t, "id") != made.text(t, "id") {
				t.Errorf("refreshed to %s", read.value)
			}
			next(t, read)
		})
	}
}

// A name that another volume has is refused when it is planned, and nothing is called.
func TestVolumeIsNotRenamedToATakenName(t *testing.T) {
	s := newSpec(t, specClouds()[0], 0)
	made := s.make(volumeType, nil)
	s.make(volumeType, given{"name": "other"})
	s.refusedOf("another of the pool", made, given{"name": "other"}, "CONFLICT", `"other"`, "two applies")
	s.makeForeignVolume("theirs", 10)
	s.refusedOf("a stranger's", made, given{"name": "theirs"}, "CONFLICT", "isn't managed")
}

// What an import has not taken over isn't renamed.
func TestImportedVolumeIsNotRenamed(t *testing.T) {
	s := newSpec(t, specClouds()[0], 0)
	made := s.make(volumeType, nil)
	imported := s.imported(made.text(t, "uri"))
	s.refusedOf("imported", imported, given{"name": "other"}, "INVALID_STATE", "not taken over yet")
}

// imported is a volume as an import and the refresh after it leave it.
func (s *spec) imported(uri string) object {
	s.t.Helper()
	resp, err := s.wire.server.ImportResourceState(s.t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: volumeType, ID: uri})
	if err != nil || len(resp.ImportedResources) != 1 {
		s.t.Fatal(err, errorsOf(resp.Diagnostics))
	}
	got := resp.ImportedResources[0]
	return s.refreshed(object{s.wire.value(volumeType, got.State), got.Private})
}

// Labels change in place. Only those that were set here are touched; unset is hands off.
func TestVolumeLabelsChangeInPlace(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		with := func(labels map[string]string) given { return given{"labels": labels} }
		made := s.make(volumeType, with(map[string]string{"role": "db", "tier": "one"}))
		s.label("theirs", "x")
		pass(time.Minute) // our own answer isn't from the same moment
		for _, step := range []struct {
			labels map[string]string
			want   []string
		}{
			{map[string]string{"role": "web", "tier": "one"}, []string{"role:web", "theirs:x", "tier:one"}},
			{map[string]string{"new": "", "role": "web"}, []string{"new", "role:web", "theirs:x"}},
			{map[string]string{}, []string{"theirs:x"}},
			{map[string]string{"role": "db"}, []string{"role:db", "theirs:x"}},
		} {
			replaced, diags := s.replaces(volumeType, made, with(step.labels))
			if len(replaced)+len(diags) > 0 {
				t.Errorf("%v: replaced for %v: %s", step.labels, replaced, warned(diags))
			}
			made = s.change(volumeType, made, with(step.labels))
			if got := s.labelled(); !slices.Equal(got, step.want) {
				t.Errorf("%v: the volume has %v, want %v", step.labels, got, step.want)
			}
		}
		made = s.settledAs(made, with(map[string]string{"role": "db"}))
		_, diags := s.wire.plan(volumeType, made, s.config(volumeType, nil))
		if !strings.Contains(warned(diags), "Labels stay") {
			t.Errorf("unset: %s", warned(diags))
		}
		s.calledFor()
		made = s.change(volumeType, made, nil)
		if got := s.labelled(); !slices.Equal(got, []string{"role:db", "theirs:x"}) {
			t.Errorf("unset: the volume has %v", got)
		}
		s.gone(volumeType, made)
	})
}

// DigitalOcean's raw tags too.
func TestVolumeRawTagsChangeInPlace(t *testing.T) {
	s := newSpec(t, specClouds()[1], 0)
	with := func(label string, tags ...string) given {
		typ := s.wire.types[volumeType].AttributeTypes["digitalocean"].(tftypes.Object)
		options := nulls(typ)
		options["tags"] = onInstances(tags...)["instances"]
		return given{"labels": map[string]string{"role": label}, "digitalocean": tftypes.NewValue(typ, options)}
	}
	made := s.make(volumeType, with("db", "raw", "role:db"))
	_, diags := s.wire.plan(volumeType, made, s.config(volumeType, with("web", "other", "role:db")))
	if len(diags) > 0 {
		t.Errorf("planned with %s", warned(diags))
	}
	made = s.change(volumeType, made, with("web", "other", "role:db"))
	if got, want := s.labelled(), []string{"other", "role:db", "role:web"}; !slices.Equal(got, want) {
		t.Errorf("the volume has %v, want %v", got, want)
	}
	s.settledAs(made, with("web", "other", "role:db"))
}

// Labels that a cloud can't hold are refused, never mangled.
func TestVolumeLabelThatTheCloudCannotHoldIsRefused(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		bad := map[string]string{"a.b": "c"}
		if s.name == "hetzner" {
			bad = map[string]string{"better-compute.io/claim": "x"}
		}
		made := s.make(volumeType, nil)
		s.refusedOf("edited", made, given{"labels": bad}, "INVALID_INPUT")
	})
}

// Deletion protection is changed in place, and refuses the destruction and the replacement
// of the volume when they are planned, also by another state.
func TestVolumeDeletionProtection(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		on := given{"deletion_protection": true, "labels": map[string]string{"role": "db"}}
		off := given{"deletion_protection": false}
		made := s.make(volumeType, on)
		if !s.shielded() {
			t.Fatal("the volume isn't protected")
		}
		made = s.settledAs(made, on)
		refused := func(what string, prior object, destroyed []*tfprotov6.Diagnostic) {
			t.Helper()
			if got := errorsOf(destroyed); !strings.Contains(got, "deletion protection") || !strings.Contains(got, "deletion_protection = false") {
				t.Errorf("%s is planned for destruction: %q", what, got)
			}
			s.refusedOf(what, prior, given{"region": s.elsewhere, "deletion_protection": false}, "INVALID_STATE", "deletion protection", "region")
		}
		refused("ours", made, s.ends(volumeType, made))

		// A state that says nothing about it, as a copy has it.
		copied := s.withoutProtection(made)
		refused("a copy", copied, s.ends(volumeType, copied))
		if _, diags := s.wire.destroy(volumeType, copied); errorsOf(diags) == "" || len(s.seen()) != 1 {
			t.Errorf("destroyed: %s", errorsOf(diags))
		}

		// Left out, it stays; lifted, the volume can be destroyed.
		_, diags := s.wire.plan(volumeType, made, s.config(volumeType, given{"labels": on["labels"]}))
		if !strings.Contains(warned(diags), "Protection stays on") {
			t.Errorf("left out: %s", warned(diags))
		}
		if replaced, _ := s.replaces(volumeType, made, off); len(replaced) > 0 {
			t.Errorf("replaced for %v", replaced)
		}
		made = s.change(volumeType, made, off)
		if s.shielded() {
			t.Error("the volume is still protected")
		}
		made = s.settledAs(made, off)
		if problems := errorsOf(s.ends(volumeType, made)); problems != "" {
			t.Error(problems)
		}
		s.gone(volumeType, made)
	})
}

// withoutProtection is a state of the same volume that doesn't manage its protection.
func (s *spec) withoutProtection(o object) object {
	s.t.Helper()
	var values map[string]tftypes.Value
	if err := o.value.As(&values); err != nil {
		s.t.Fatal(err)
	}
	values = maps.Clone(values)
	values["deletion_protection"] = tftypes.NewValue(tftypes.Bool, nil)
	return object{tftypes.NewValue(o.value.Type(), values), o.private}
}

// Protection that someone lifted in the cloud shows, and is put back.
func TestVolumeProtectionLiftedOutsideIsPutBack(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		on := given{"deletion_protection": true}
		made := s.make(volumeType, on)
		for _, v := range s.hetzner.Volumes() {
			s.hetzner.SetVolumeProtection(v.ID, false)
		}
		for _, v := range s.cloud.Volumes() {
			s.cloud.SetVolumeTags(v.ID, slices.DeleteFunc(v.Tags, func(tag string) bool { return strings.HasSuffix(tag, ":protected") })...)
		}
		read := s.refreshed(made)
		if read.value.Equal(made.value) {
			t.Error("it doesn't show")
		}
		s.change(volumeType, read, on)
		if !s.shielded() {
			t.Error("the volume isn't protected again")
		}
	})
}

// An instance isn't destroyed or replaced together with a volume that is protected.
func TestInstanceWithAProtectedVolumeThatGoes(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		web := s.make(instanceType, nil)
		s.make(volumeType, given{"instances": []string{web.text(t, "uri")}, "delete_with_instance": true, "deletion_protection": true})
		if got := errorsOf(s.ends(instanceType, web)); !strings.Contains(got, "deletion protection") {
			t.Errorf("its destruction is planned: %q", got)
		}
		_, diags := s.replaces(instanceType, web, given{"region": s.elsewhere})
		if got := errorsOf(diags); !strings.Contains(got, "deletion protection") {
			t.Errorf("its replacement is planned: %q", got)
		}
		if _, diags := s.wire.destroy(instanceType, web); !strings.Contains(errorsOf(diags), "deletion protection") || s.one().machine == "" {
			t.Errorf("destroyed: %s, the volume is %+v", errorsOf(diags), s.one())
		}
	})
}

// A share on DigitalOcean has no place for a mark: its state protects it.
func TestShareIsProtectedByItsState(t *testing.T) {
	onShares(t, func(t *testing.T, s *spec, vpc string) {
		on, off := s.share(vpc, given{"deletion_protection": true}), s.share(vpc, given{"deletion_protection": false})
		_, diags := s.wire.plan(volumeType, s.wire.none(volumeType), s.config(volumeType, on))
		if !strings.Contains(warned(diags), "Protected by this state only") {
			t.Errorf("planned with %s", warned(diags))
		}
		made := s.make(volumeType, on)
		made = s.settledAs(made, on)
		if got := errorsOf(s.ends(volumeType, made)); !strings.Contains(got, "deletion protection") {
			t.Errorf("its destruction is planned: %q", got)
		}
		if _, diags := s.wire.destroy(volumeType, made); errorsOf(diags) == "" || len(s.cloud.Shares()) != 1 {
			t.Errorf("destroyed: %s", errorsOf(diags))
		}
		s.gone(volumeType, s.change(volumeType, made, off))
	})
}

// allow_replacement = false refuses what would replace the volume, also by -replace; a
// volume that is gone may be replaced.
func TestVolumeAllowReplacement(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		keep := given{"allow_replacement": false, "filesystem": "ext4"}
		made := s.make(volumeType, keep)
		changes := []given{{"region": s.elsewhere}, {"filesystem": "xfs"}}
		if s.name == "digitalocean" {
			changes = append(changes, given{"name": "other"})
		}
		for _, change := range changes {
			kept := maps.Clone(keep)
			maps.Copy(kept, change)
			kept["allow_replacement"] = false
			s.refusedOf("kept", made, kept, "INVALID_STATE", "allow_replacement = false")
			kept["allow_replacement"] = true
			if got := s.problems(volumeType, made, kept); got != "" {
				t.Errorf("allowed: %s", got)
			}
		}
		// The second plan of a replacement that the user asks for has no state.
		asked := func(more given) string {
			planned, _ := s.wire.plan(volumeType, made, s.config(volumeType, more))
			_, diags := s.wire.plan(volumeType, object{s.wire.none(volumeType).value, planned.private}, s.config(volumeType, more))
			return errorsOf(diags)
		}
		if got := asked(keep); !strings.Contains(got, "allow_replacement = false") {
			t.Errorf("-replace: %q", got)
		}
		if got := asked(given{"filesystem": "ext4"}); got != "" {
			t.Errorf("-replace, allowed: %q", got)
		}
		if problems := errorsOf(s.ends(volumeType, made)); problems != "" {
			t.Errorf("destroyed: %s", problems)
		}
		s.deleteOutside()
		made = s.refreshed(made)
		if got := asked(keep); got != "" {
			t.Errorf("-replace of what is gone: %q", got)
		}
	})
}

// A change of several things that fails after the rename records the rename.
func TestVolumeRenamedAndNotGrown(t *testing.T) {
	s := newSpec(t, specClouds()[0], 0)
	made := s.make(volumeType, nil)
	s.broken(emulator.Rule{Service: "hetzner", Method: "POST", Path: "/v1/volumes/*/actions/resize", Kind: emulator.KindStatus, Status: 403, Times: emulator.Forever})
	more := given{"name": "renamed", "size_gib": 20}
	half, diags := s.wire.apply(t.Context(), volumeType, made, s.config(volumeType, more))
	if errorsOf(diags) == "" || half.text(t, "name") != "renamed" || half.text(t, "id") == made.text(t, "id") {
		t.Errorf("%s, recorded %s", errorsOf(diags), half.value)
	}
	s.hetzner.ClearFaults()
	whole := s.change(volumeType, s.refreshed(half), more)
	if is := s.one(); is.name != "renamed" || is.size != 20 {
		t.Errorf("the volume is %+v", is)
	}
	s.settledAs(whole, more)
}
