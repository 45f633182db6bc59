// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// destroyPlan is what planning the destruction of a resource says.
func (w *wire) destroyPlan(resource string, prior object) []*tfprotov6.Diagnostic {
	w.t.Helper()
	none := w.dynamic(w.types[resource], w.none(resource).value)
	resp, err := w.server.PlanResourceChange(w.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resource, PriorState: w.dynamic(w.types[resource], prior.value), PriorPrivate: prior.private,
		ProposedNewState: none, Config: none, ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.Diagnostics
}

// imported is what importing says; "" when it is well.
func (w *wire) imported(resource, id string) string {
	w.t.Helper()
	resp, err := w.server.ImportResourceState(w.t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: resource, ID: id, ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return errorsOf(resp.Diagnostics)
}

// A share isn't deleted while it has snapshots: plans that destroy or replace it say
// so, naming them. A block volume's snapshots outlive it.
func TestVolumePlansWarnOfAShareWithSnapshots(t *testing.T) {
	const says = `The shared volume has snapshots: "data"`
	onShares(t, func(t *testing.T, s *spec, vpc string) {
		share := s.make(volumeType, s.share(vpc, nil))
		plans := map[string]func() []*tfprotov6.Diagnostic{
			"destroyed": func() []*tfprotov6.Diagnostic { return s.wire.destroyPlan(volumeType, share) },
			"replaced": func() []*tfprotov6.Diagnostic {
				_, diags := s.wire.plan(volumeType, share, s.config(volumeType, s.share(vpc, given{"name": "renamed"})))
				return diags
			},
		}
		for name, plan := range plans {
			if got := warned(plan()); strings.Contains(got, "snapshots") {
				t.Errorf("%s without a snapshot: %s", name, got)
			}
		}
		snapshot := s.make(snapshotType, nil)
		for name, plan := range plans {
			got := warned(plan())
			if !strings.Contains(got, "has snapshots: ") || !strings.Contains(got, snapshot.text(t, "snapshot_id")) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := warned(plans["destroyed"]()); !strings.Contains(got, says) {
			t.Errorf("no %q in %s", says, got)
		}
		_, diags := s.wire.destroy(volumeType, share)
		if problems := errorsOf(diags); !strings.HasPrefix(problems, "INVALID_STATE: ") {
			t.Errorf("destroying it: %s", problems)
		}
		// What can't be read keeps nobody from planning.
		s.broken(emulator.Rule{
			Service: "digitalocean", Method: http.MethodGet, Path: "/v2/nfs/snapshots", Kind: emulator.KindStatus, Status: http.StatusForbidden, Times: emulator.Forever,
		})
		if diags := plans["destroyed"](); len(diags) > 0 {
			t.Errorf("unreadable: %s%s", warned(diags), errorsOf(diags))
		}
		s.cloud.ClearFaults()
		s.gone(snapshotType, snapshot)
		s.gone(volumeType, share)
	})
}

func TestVolumePlansDontWarnOfABlockVolumesSnapshots(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	w := o.wire()
	config := given{"name": "data", "pool": oceanPoolURI, "size_gib": 10}
	s := &spec{ocean: o, specCloud: specClouds()[1], wire: w}
	made := s.make(volumeType, config)
	s.make(snapshotType, nil)
	if diags := w.destroyPlan(volumeType, made); len(diags) > 0 {
		t.Errorf("%s%s", warned(diags), errorsOf(diags))
	}
}

// post makes something in the cloud as a user of its API does, and is its id.
func (o *ocean) post(path, body, name string) string {
	o.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://emulator"+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := emulator.Transport(o.cloud).RoundTrip(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer map[string]struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		o.t.Fatalf("POST %s: %s: %v", path, resp.Status, err)
	}
	return answer[name].ID
}

// The marks of a share and of its snapshots are in their names, so those that
// something else made can't become ours: an import says so, and what to do.
func TestImportOfASomeoneElsesShareIsUnsupported(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	vpc := o.cloud.AddVPC("files", oceanShareRegion)
	share := o.post("/v2/nfs", fmt.Sprintf(`{"name":"legacy","size_gib":50,"region":%q,"vpc_ids":[%q]}`, oceanShareRegion, vpc), "share")
	o.post("/v2/nfs/"+share+"/actions", fmt.Sprintf(`{"type":"snapshot","region":%q,"params":{"name":"first"}}`, oceanShareRegion), "action")
	w := o.wire()
	uri := "digitalocean://root/main/web/volumes/legacy"
	for resource, test := range map[string]struct{ uri, id string }{
		volumeType:   {uri + oceanQuery, share},
		snapshotType: {uri + "/snapshots/first" + oceanQuery, o.cloud.ShareSnapshots()[0].ID},
	} {
		got := w.imported(resource, test.uri)
		for _, want := range []string{"UNSUPPORTED: ", test.id, "not made by this provider", "Make a new"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in %q", resource, want, got)
			}
		}
	}
}

// A volume from a snapshot has the snapshot's filesystem: one that is asked for is
// only recorded, and the plan says so.
func TestVolumeFromASnapshotWarnsOfAFilesystem(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	s := &spec{ocean: o, specCloud: specClouds()[1], wire: o.wire()}
	s.make(volumeType, given{"filesystem": "ext4"})
	first := s.make(snapshotType, nil)
	copied := given{"name": "copy", "from_snapshot": first.text(t, "uri")}
	plan := func(prior object, filesystem any) string {
		copied["filesystem"] = filesystem
		_, diags := s.wire.plan(volumeType, prior, s.config(volumeType, copied))
		if problems := errorsOf(diags); problems != "" {
			t.Fatal(problems)
		}
		return warned(diags)
	}
	none := s.wire.none(volumeType)
	if got := plan(none, nil); got != "" {
		t.Errorf("without one: %s", got)
	}
	if got := plan(none, "xfs"); !strings.Contains(got, "Worth a look") || !strings.Contains(got, "only recorded") {
		t.Errorf("a creation: %q", got)
	}
	made := s.make(volumeType, copied)
	again := s.wire.none(volumeType) // the second call of a replacement's plan
	again.private = made.private
	if got := plan(again, "xfs"); !strings.Contains(got, "Worth a look") {
		t.Errorf("a replacement: %q", got)
	}
	if got := plan(made, "xfs"); got != "" {
		t.Errorf("nothing to do: %q", got)
	}
}

// With neither the pool nor the instances known, a plan can't replace the volume that
// goes with its instance, and says what the apply may come to.
func TestVolumePlanWarnsOfALossThatItCantPlan(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	s := &spec{ocean: o, specCloud: specClouds()[1], wire: o.wire()}
	instance := s.make(instanceType, nil)
	goes := given{"instances": []string{instance.text(t, "uri")}, "delete_with_instance": true}
	volume := s.make(volumeType, goes)
	plan := func(unknown ...string) string {
		var values map[string]tftypes.Value
		if err := s.config(volumeType, goes).As(&values); err != nil {
			t.Fatal(err)
		}
		for _, name := range unknown {
			values[name] = tftypes.NewValue(s.wire.types[volumeType].AttributeTypes[name], tftypes.UnknownValue)
		}
		_, diags := s.wire.plan(volumeType, volume, tftypes.NewValue(s.wire.types[volumeType], values))
		return warned(diags)
	}
	if got := plan("pool"); got != "" {
		t.Errorf("the pool alone: %s", got)
	}
	if got := plan("instances"); !strings.Contains(got, "The volume's data goes with the instance") {
		t.Errorf("the instances alone: %q", got)
	}
	got := plan("pool", "instances")
	for _, want := range []string{"The volume's data may go with the instance", "the core refuses the apply after the loss", `"web-0"`, "delete_with_instance = false"} {
		if !strings.Contains(got, want) {
			t.Errorf("both: no %q in %q", want, got)
		}
	}
}
