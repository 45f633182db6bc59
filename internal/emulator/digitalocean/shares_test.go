// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// newShare is a request for a share of 50 GiB in nyc2.
func newShare(name, vpc string) string {
	return fmt.Sprintf(`{"name":%q,"region":"nyc2","size_gib":50,"vpc_ids":[%q]}`, name, vpc)
}

func makeShare(t *testing.T, handler http.Handler, body string) string {
	t.Helper()
	return makeOne(t, handler, "/v2/nfs", "share", body)
}

// actOnShare asks for an action, whose answer must have the status and text.
func actOnShare(t *testing.T, handler http.Handler, id, what, params string, status int, want string) string {
	t.Helper()
	got, body, _ := do(t, handler, "POST", "/v2/nfs/"+id+"/actions", fmt.Sprintf(`{"type":%q,"region":"","params":%s}`, what, params))
	if got != status || !strings.Contains(body, want) {
		t.Errorf("%s %s: %d %s", what, params, got, body)
	}
	return body
}

// TestShareClient walks through a share's life with the vendor's own client.
func TestShareClient(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{Boot: 8 * time.Millisecond})
	client := serve(t, s)
	ctx := t.Context()
	first, second := s.AddVPC("one", "nyc2"), s.AddVPC("two", "nyc2")

	options := must[*godo.NfsOptions](t)(client.Nfs.GetOptions(ctx))
	if !slices.Contains(options.SupportedRegions, "nyc2") || len(options.PerformanceTiers) != 2 || options.PerformanceTiers[0].MinSizeGib != 50 {
		t.Errorf("options %+v", options)
	}
	share := must[*godo.Nfs](t)(client.Nfs.Create(ctx, &godo.NfsCreateRequest{Name: "bc-data", SizeGib: 50, Region: "nyc2", VpcIDs: []string{first}}))
	if share.Status != godo.NfsShareCreating || share.Host != "" || share.MountPath != "" || share.Region != "nyc2" || !slices.Equal(share.VpcIDs, []string{first}) {
		t.Errorf("created %+v", share)
	}
	for share.Status == godo.NfsShareCreating {
		share = must[*godo.Nfs](t)(client.Nfs.Get(ctx, share.ID, "nyc2"))
	}
	if share.Status != godo.NfsShareActive || !strings.HasPrefix(share.Host, "10.128.") || share.MountPath != "/123456/"+share.ID ||
		share.PerformanceTier != "PERFORMANCE_TIER_STANDARD" {
		t.Errorf("share %+v", share)
	}

	// Names are not unique.
	twin := must[*godo.Nfs](t)(client.Nfs.Create(ctx, &godo.NfsCreateRequest{Name: "bc-data", SizeGib: 500, Region: "nyc2", VpcIDs: []string{first}, PerformanceTier: "high"}))
	listed := must[[]*godo.Nfs](t)(client.Nfs.ListWithOptions(ctx, &godo.NfsListOptions{Name: "bc-data", Region: "nyc2", ListOptions: godo.ListOptions{PerPage: 200}}))
	if len(listed) != 2 {
		t.Errorf("by name: %d shares", len(listed))
	}
	if other := must[[]*godo.Nfs](t)(client.Nfs.List(ctx, nil, "atl1")); len(other) != 0 {
		t.Errorf("in another region: %+v", other)
	}

	wait := func(action *godo.NfsAction, _ *godo.Response, err error) *godo.NfsAction {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for action.Status == godo.NfsActionStatusInProgress {
			action = must[*godo.NfsAction](t)(client.NfsActions.Get(ctx, action.ID))
		}
		if action.Status != godo.NfsActionStatusCompleted || action.CompletedAt == nil {
			t.Errorf("action %+v", action)
		}
		return action
	}
	wait(client.NfsActions.Resize(ctx, share.ID, 60, "nyc2"))
	wait(client.NfsActions.Attach(ctx, share.ID, second, "nyc2"))
	if got := s.Shares()[0]; got.SizeGiB != 60 || !slices.Equal(got.VPCs, []string{first, second}) {
		t.Errorf("share %+v", got)
	}
	wait(client.NfsActions.Detach(ctx, share.ID, second, "nyc2"))
	wait(client.NfsActions.Reassign(ctx, share.ID, first, second))
	if got := s.Shares()[0]; !slices.Equal(got.VPCs, []string{second}) || got.Status != "ACTIVE" {
		t.Errorf("share %+v", got)
	}
	wait(client.NfsActions.Detach(ctx, share.ID, second, "nyc2"))
	if got := must[*godo.Nfs](t)(client.Nfs.Get(ctx, share.ID, "")); got.Status != "INACTIVE" || len(got.VpcIDs) != 0 || got.MountPath == "" {
		t.Errorf("attached to nothing: %+v", got)
	}
	wait(client.NfsActions.Attach(ctx, share.ID, first, ""))
	wait(client.NfsActions.Resize(ctx, share.ID, 500, ""))
	wait(client.NfsActions.SwitchPerformanceTier(ctx, share.ID, "high"))
	if got := s.Shares()[0]; got.Tier != "high" || got.Status != "ACTIVE" {
		t.Errorf("share %+v", got)
	}

	action, _, err := client.NfsActions.Snapshot(ctx, share.ID, "bc-first", "nyc2")
	if err != nil || action.ResourceType != "SNAPSHOT" {
		t.Fatalf("snapshot: %+v %v", action, err)
	}
	// doctl reads the id as a number, and asks for the action among all.
	number, err := strconv.Atoi(action.ID)
	if err != nil {
		t.Fatal(err)
	}
	finished(t, client, number)
	snapshot := must[*godo.NfsSnapshot](t)(client.Nfs.GetSnapshot(ctx, action.ResourceID, "nyc2"))
	if snapshot.Status != godo.NfsSnapshotActive || snapshot.ShareID != share.ID || snapshot.SizeGib != 500 || snapshot.Name != "bc-first" {
		t.Errorf("snapshot %+v", snapshot)
	}
	if list := must[[]*godo.NfsSnapshot](t)(client.Nfs.ListSnapshots(ctx, nil, share.ID, "nyc2")); len(list) != 1 {
		t.Errorf("snapshots %+v", list)
	}
	if list := must[[]*godo.NfsSnapshot](t)(client.Nfs.ListSnapshots(ctx, nil, twin.ID, "")); len(list) != 0 {
		t.Errorf("snapshots of another share: %+v", list)
	}
	if _, err := client.Nfs.Delete(ctx, share.ID, "nyc2"); err != nil {
		refusal(t, err, 412, "active snapshots")
	} else {
		t.Error("a share with snapshots was deleted")
	}
	done(t)(client.Nfs.DeleteSnapshot(ctx, snapshot.ID, "nyc2"))
	if list := must[[]*godo.NfsSnapshot](t)(client.Nfs.ListSnapshots(ctx, &godo.ListOptions{Page: 1}, "", "")); len(list) != 0 {
		t.Errorf("snapshots left: %+v", list)
	}
	done(t)(client.Nfs.Delete(ctx, share.ID, ""))
	if _, _, err := client.Nfs.Get(ctx, share.ID, "nyc2"); err != nil {
		refusal(t, err, 404, "could not be found")
	} else {
		t.Error("still there")
	}
	if got := must[*godo.NfsAction](t)(client.NfsActions.Get(ctx, action.ID)); got.Status != "COMPLETED" {
		t.Errorf("the action went with its share: %+v", got)
	}

	for s.Shares()[0].Status == "CREATING" {
		must[*godo.Nfs](t)(client.Nfs.Get(ctx, twin.ID, ""))
	}
	wait(client.NfsActions.Snapshot(ctx, twin.ID, "s", ""))
	done(t)(client.Nfs.DeleteWithOptions(ctx, twin.ID, &godo.NfsDeleteOptions{DeleteSnapshots: true}))
	if len(s.Shares()) != 0 || len(s.ShareSnapshots()) != 0 {
		t.Errorf("left: %+v %+v", s.Shares(), s.ShareSnapshots())
	}
}

// TestShareRules sends what the API refuses, and looks at how it says so.
func TestShareRules(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	handler := described(t, s, openapitest.AnswersOnly())
	vpc, other, far := s.AddVPC("one", "nyc2"), s.AddVPC("two", "nyc2"), s.AddVPC("far", "atl1")
	id := makeShare(t, handler, newShare("data", vpc))
	one := "/v2/nfs/" + id
	change := func(old, new string) string { return strings.Replace(newShare("w", vpc), old, new, 1) }

	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v2/nfs", newShare("Upper", vpc), 400, "'name'"},
		{"POST", "/v2/nfs", newShare("a"+strings.Repeat("x", 64), vpc), 400, "'name'"},
		{"POST", "/v2/nfs", change("50", "49"), 400, "The value for 'size_gib' must be greater than or equal to 50Gib."},
		{"POST", "/v2/nfs", change("50", "10241"), 400, "less than or equal to 10240Gib."},
		{"POST", "/v2/nfs", change("}", `,"performance_tier":"high"}`), 400, "greater than or equal to 500Gib."},
		{"POST", "/v2/nfs", change("}", `,"performance_tier":"best"}`), 400, "'performance_tier'"},
		{"POST", "/v2/nfs", change("nyc2", "fra1"), 400, "'region'"},
		{"POST", "/v2/nfs", change(`"`+vpc+`"`, ""), 400, "'vpc_ids'"},
		{"POST", "/v2/nfs", newShare("w", far), 400, "not in the region"},
		{"POST", "/v2/nfs", newShare("w", "none"), 400, "does not exist"},
		{"GET", "/v2/nfs/none", "", 404, "not_found"},
		{"DELETE", "/v2/nfs/none?region=nyc2", "", 404, "not_found"},
		{"GET", "/v2/nfs/actions/1", "", 404, "not_found"},
		{"GET", "/v2/nfs/snapshots/none", "", 404, "not_found"},
		{"DELETE", "/v2/nfs/snapshots/none", "", 404, "not_found"},
		{"POST", "/v2/nfs/none/actions", `{"type":"resize"}`, 404, "not_found"},
		{"GET", "/v2/nfs?name=data&page=2&per_page=1", "", 200, `"meta":{"page":2,"per_page":1,"total":1},"shares":[]`},
		{"DELETE", "/v2/vpcs/" + vpc, "", 409, "members"},
	} {
		status, body, _ := do(t, handler, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.90s: %d %s", test.method, test.path, test.body, status, body)
		}
	}
	if _, body, _ := do(t, handler, "GET", "/v2/nfs", ""); strings.Contains(body, `"links"`) {
		t.Errorf("a list of shares has links: %s", body)
	}
	for _, test := range []struct {
		what, params string
		status       int
		want         string
	}{
		{"resize", `{"size_gib":50}`, 400, "greater than the current size"},
		{"resize", `{"size_gib":10241}`, 400, "10240Gib"},
		{"resize", `7`, 400, "'params'"},
		{"snapshot", `{}`, 400, "'name'"},
		{"attach", fmt.Sprintf(`{"vpc_id":%q}`, vpc), 400, "already attached"},
		{"attach", fmt.Sprintf(`{"vpc_id":%q}`, far), 400, "not in the region"},
		{"detach", fmt.Sprintf(`{"vpc_id":%q}`, other), 400, "not attached"},
		{"reassign", fmt.Sprintf(`{"old_vpc_id":%q,"new_vpc_id":%q}`, other, vpc), 400, "the old VPC"},
		{"reassign", fmt.Sprintf(`{"old_vpc_id":%q,"new_vpc_id":%q}`, vpc, far), 400, "not in the region"},
		{"switch_performance_tier", `{"performance_tier":"standard"}`, 400, "share is already in the requested performance tier"},
		{"switch_performance_tier", `{"performance_tier":"high"}`, 400, "500Gib"},
		{"format", `{}`, 400, "'type'"},
		{"resize", `{"size_gib":500}`, 201, `"type":"RESIZE_SHARE"`},
		{"switch_performance_tier", `{"performance_tier":"high"}`, 201, `"status":"COMPLETED"`},
		{"switch_performance_tier", `{"performance_tier":"standard"}`, 400, "can't be lowered"},
	} {
		actOnShare(t, handler, id, test.what, test.params, test.status, test.want)
	}
	if status, body, _ := do(t, handler, "DELETE", one, ""); status != 200 || !strings.Contains(body, `"status":"DELETED"`) || !strings.Contains(body, `"type":"DELETE_SHARE"`) {
		t.Errorf("deleting: %d %s", status, body)
	}
	if len(s.Shares()) != 0 {
		t.Errorf("shares %+v", s.Shares())
	}
}

// TestShareTime watches a share and its snapshot being made, by the clock.
func TestShareTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: 40 * time.Second})
		handler := described(t, s)
		id := makeShare(t, handler, newShare("data", s.AddVPC("one", "nyc2")))
		actOnShare(t, handler, id, "snapshot", `{"name":"s"}`, 400, "not active")
		<-time.After(19 * time.Second)
		if _, body, _ := do(t, handler, "GET", "/v2/nfs/"+id, ""); !strings.Contains(body, `"status":"CREATING"`) || !strings.Contains(body, `"host":""`) {
			t.Errorf("too early: %s", body)
		}
		state, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		if s.Shares()[0].Status != "ACTIVE" {
			t.Errorf("too late: %+v", s.Shares()[0])
		}
		restored := digitalocean.New(digitalocean.Options{})
		if err := restored.Restore(state); err != nil {
			t.Fatal(err)
		}
		if got := restored.Shares(); len(got) != 1 || got[0].Status != "ACTIVE" {
			t.Errorf("restored: %+v", got)
		}
		body := actOnShare(t, handler, id, "snapshot", `{"name":"s"}`, 201, `"status":"IN_PROGRESS"`)
		var answer struct {
			Action struct {
				ResourceID string `json:"resource_id"`
			} `json:"action"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		snapshot := "/v2/nfs/snapshots/" + answer.Action.ResourceID
		if _, body, _ := do(t, handler, "GET", snapshot, ""); !strings.Contains(body, `"status":"CREATING"`) {
			t.Errorf("at once: %s", body)
		}
		<-time.After(10 * time.Second)
		if _, body, _ := do(t, handler, "GET", snapshot, ""); !strings.Contains(body, `"status":"ACTIVE"`) {
			t.Errorf("after 10 s: %s", body)
		}
	})
}

// TestShareFaults sets each fault that concerns shares in a way of its own.
func TestShareFaults(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	handler := described(t, s)
	vpc := s.AddVPC("one", "nyc2")
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs", Kind: emulator.KindCapacity})
	if status, body, _ := do(t, handler, "POST", "/v2/nfs", newShare("a", vpc)); status != 403 || !strings.Contains(body, "capacity limit exceeded") || len(s.Shares()) != 0 {
		t.Errorf("capacity: %d %s", status, body)
	}
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs", Kind: emulator.KindFailAction})
	failed := makeShare(t, handler, newShare("failed", vpc))
	if _, body, _ := do(t, handler, "GET", "/v2/nfs/"+failed, ""); !strings.Contains(body, `"status":"FAILED"`) || !strings.Contains(body, `"host":""`) {
		t.Errorf("a share whose making failed: %s", body)
	}
	if status, _, _ := do(t, handler, "DELETE", "/v2/nfs/"+failed, ""); status != 200 || len(s.Shares()) != 0 {
		t.Errorf("deleting it: %d", status)
	}

	addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs", Kind: emulator.KindLoseAnswer})
	if _, _, _, err := try(t.Context(), s, "POST", "/v2/nfs", newShare("a", vpc)); err == nil || len(s.Shares()) != 1 {
		t.Errorf("lost answer: %v, %d shares", err, len(s.Shares()))
	}
	id := s.Shares()[0].ID
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs/*/actions", Kind: emulator.KindFailAction, Times: 2})
	actOnShare(t, handler, id, "resize", `{"size_gib":60}`, 201, `"status":"ACTION_FAILED"`)
	actOnShare(t, handler, id, "snapshot", `{"name":"s"}`, 201, `"status":"ACTION_FAILED"`)
	if got := s.Shares()[0]; got.SizeGiB != 50 || s.ShareSnapshots()[0].Status != "FAILED" {
		t.Errorf("after actions that failed: %+v %+v", got, s.ShareSnapshots())
	}
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs/*/actions", Kind: emulator.KindLoseAnswer})
	if _, _, _, err := try(t.Context(), s, "POST", "/v2/nfs/"+id+"/actions", `{"type":"snapshot","params":{"name":"t"}}`); err == nil || len(s.ShareSnapshots()) != 2 {
		t.Errorf("lost answer: %v, %d snapshots", err, len(s.ShareSnapshots()))
	}
	addFault(t, s, emulator.Rule{Method: "DELETE", Kind: emulator.KindFailAction})
	if status, body, _ := do(t, handler, "DELETE", "/v2/nfs/"+id+"?delete_snapshots=true", ""); status != 200 || len(s.Shares()) != 1 {
		t.Errorf("a deletion that fails: %d %s", status, body)
	}
}

// TestLateShares: shares and their snapshots are late in lists, or not to be
// found at all, for a while.
func TestLateShares(t *testing.T) {
	for kind, status := range map[emulator.Kind]int{emulator.KindHideFromLists: 200, emulator.KindEarly404: 404} {
		synctest.Test(t, func(t *testing.T) {
			s := digitalocean.New(digitalocean.Options{})
			vpc := s.AddVPC("one", "nyc2")
			<-time.After(5 * time.Second) // the VPC is not to be missing too
			addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs*", Kind: kind, Delay: emulator.Duration(5 * time.Second)})
			id := makeShare(t, s, newShare("a", vpc))
			if got, _, _ := do(t, s, "GET", "/v2/nfs/"+id, ""); got != status {
				t.Errorf("%s: get says %d", kind, got)
			}
			if _, body, _ := do(t, s, "GET", "/v2/nfs?name=a", ""); strings.Contains(body, id) {
				t.Errorf("%s: %s", kind, body)
			}
			<-time.After(5 * time.Second)
			if _, body, _ := do(t, s, "GET", "/v2/nfs?name=a", ""); !strings.Contains(body, id) {
				t.Errorf("%s: never listed: %s", kind, body)
			}
			addFault(t, s, emulator.Rule{Method: "POST", Path: "/nfs/*/actions", Kind: kind, Delay: emulator.Duration(5 * time.Second)})
			actOnShare(t, s, id, "snapshot", `{"name":"s"}`, 201, "")
			snapshot := s.ShareSnapshots()[0].ID
			if got, _, _ := do(t, s, "GET", "/v2/nfs/snapshots/"+snapshot, ""); got != status {
				t.Errorf("%s: get of a snapshot says %d", kind, got)
			}
			if _, body, _ := do(t, s, "GET", "/v2/nfs/snapshots", ""); strings.Contains(body, snapshot) {
				t.Errorf("%s: %s", kind, body)
			}
			<-time.After(5 * time.Second)
			if _, body, _ := do(t, s, "GET", "/v2/nfs/snapshots?share_id="+id, ""); !strings.Contains(body, snapshot) {
				t.Errorf("%s: never listed: %s", kind, body)
			}
		})
	}
}

// TestShareDrift uses what Go tests change behind the API's back.
func TestShareDrift(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	vpc := s.AddVPC("one", "nyc2")
	id := makeShare(t, s, newShare("bc-a", vpc))
	actOnShare(t, s, id, "snapshot", `{"name":"bc-s"}`, 201, "")
	snapshot := s.ShareSnapshots()[0].ID
	rows := s.Objects()
	if len(rows.Volumes) != 1 || rows.Volumes[0] != (emulator.Object{ID: id, Name: "bc-a", State: "ACTIVE", Managed: true}) ||
		len(rows.Snapshots) != 1 || rows.Snapshots[0] != (emulator.Object{ID: snapshot, Name: "bc-s", State: "ACTIVE", Managed: true}) {
		t.Errorf("rows %+v", rows)
	}
	foreign := makeShare(t, s, newShare("a", vpc))
	if s.Objects().Volumes[1].Managed || !s.DeleteShare(foreign) {
		t.Error("a foreign share is managed")
	}
	if !s.SetShareStatus(id, "FAILED") || !s.SetShareSize(id, 77) || s.Shares()[0].Status != "FAILED" || s.Shares()[0].SizeGiB != 77 {
		t.Errorf("share %+v", s.Shares()[0])
	}
	if !s.SetShareVPCs(id) || s.Shares()[0].Status != "INACTIVE" || len(s.Shares()[0].VPCs) != 0 || !s.SetShareVPCs(id, vpc) || s.Shares()[0].Status != "ACTIVE" {
		t.Errorf("share %+v", s.Shares()[0])
	}
	if !s.DeleteShareSnapshot(snapshot) || s.DeleteShareSnapshot(snapshot) || len(s.ShareSnapshots()) != 0 {
		t.Error("delete snapshot")
	}
	if !s.DeleteShare(id) || s.DeleteShare(id) || len(s.Shares()) != 0 {
		t.Error("delete")
	}
}
