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
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// newVolume is a request for a volume of 10 GiB in fra1.
func newVolume(name string) string {
	return fmt.Sprintf(`{"name":%q,"region":"fra1","size_gigabytes":10}`, name)
}

// makeVolume makes a volume and returns its id.
func makeVolume(t *testing.T, handler http.Handler, body string) string {
	t.Helper()
	return makeOne(t, handler, "/v2/volumes", "volume", body)
}

// makeOne makes something and returns its id.
func makeOne(t *testing.T, handler http.Handler, path, key, body string) string {
	t.Helper()
	status, text, _ := do(t, handler, "POST", path, body)
	var answer map[string]struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status/100 != 2 || answer[key].ID == "" {
		t.Fatalf("POST %s: %d %s", path, status, text)
	}
	return answer[key].ID
}

// makeDroplet makes a Droplet and returns its id.
func makeDroplet(t *testing.T, s *digitalocean.Service, name, region string) int64 {
	t.Helper()
	status, text, _ := do(t, s, "POST", "/v2/droplets", fmt.Sprintf(`{"name":%q,"region":%q,"size":"s-1vcpu-1gb","image":"debian-12-x64"}`, name, region))
	if status != 202 {
		t.Fatalf("droplet: %d %s", status, text)
	}
	droplets := s.Droplets()
	return droplets[len(droplets)-1].ID
}

// finished asks for an action until it is completed.
func finished(t *testing.T, client *godo.Client, id int) {
	t.Helper()
	for {
		action := must[*godo.Action](t)(client.Actions.Get(t.Context(), id))
		switch action.Status {
		case godo.ActionCompleted:
			return
		case "errored":
			t.Fatalf("action %d failed", id)
		}
	}
}

// TestVolumeClient walks through a volume's life with the vendor's own client.
func TestVolumeClient(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{Boot: 8 * time.Millisecond})
	client := serve(t, s)
	ctx := t.Context()

	droplet := must[*godo.Droplet](t)(client.Droplets.Create(ctx, small("web-0")))
	volume := must[*godo.Volume](t)(client.Storage.CreateVolume(ctx, &godo.VolumeCreateRequest{
		Name: "data", Region: "fra1", SizeGigaBytes: 10, Description: "d", FilesystemType: "xfs", FilesystemLabel: "disk",
		Tags: []string{"better-compute", "better-compute:key:abc"},
	}))
	if volume.Region.Slug != "fra1" || volume.SizeGigaBytes != 10 || len(volume.DropletIDs) != 0 || volume.FilesystemType != "xfs" ||
		volume.FilesystemLabel != "disk" || volume.Description != "d" || len(volume.Tags) != 2 || volume.CreatedAt.IsZero() {
		t.Errorf("volume %+v", volume)
	}
	plain := must[*godo.Volume](t)(client.Storage.CreateVolume(ctx, &godo.VolumeCreateRequest{Name: "data", Region: "ams3", SizeGigaBytes: 1}))
	if plain.FilesystemType != "" || plain.ID == volume.ID {
		t.Errorf("volume %+v", plain)
	}
	listed := must[[]godo.Volume](t)(client.Storage.ListVolumes(ctx, &godo.ListVolumeParams{Name: "data", Region: "fra1"}))
	if len(listed) != 1 || listed[0].ID != volume.ID {
		t.Errorf("by name and region: %+v", listed)
	}
	if all := must[[]godo.Volume](t)(client.Storage.ListVolumes(ctx, &godo.ListVolumeParams{Name: "data"})); len(all) != 2 {
		t.Errorf("by name: %+v", all)
	}

	for s.Droplets()[0].Locked {
		must[*godo.Droplet](t)(client.Droplets.Get(ctx, droplet.ID))
	}
	attach := must[*godo.Action](t)(client.StorageActions.Attach(ctx, volume.ID, droplet.ID))
	if attach.Type != "attach_volume" || attach.ResourceType != "volume" || attach.ResourceID != 0 {
		t.Errorf("action %+v", attach)
	}
	finished(t, client, attach.ID)
	volume = must[*godo.Volume](t)(client.Storage.GetVolume(ctx, volume.ID))
	if !slices.Equal(volume.DropletIDs, []int{droplet.ID}) {
		t.Errorf("attached: %+v", volume)
	}
	if got := must[*godo.Droplet](t)(client.Droplets.Get(ctx, droplet.ID)); !slices.Equal(got.VolumeIDs, []string{volume.ID}) {
		t.Errorf("the Droplet's volumes: %v", got.VolumeIDs)
	}
	if _, err := client.Storage.DeleteVolume(ctx, volume.ID); err != nil {
		refusal(t, err, 409, "failed to delete volume: attached volume cannot be deleted")
	} else {
		t.Error("an attached volume was deleted")
	}
	resize := must[*godo.Action](t)(client.StorageActions.Resize(ctx, volume.ID, 20, "fra1"))
	finished(t, client, resize.ID)
	if got := must[*godo.Action](t)(client.StorageActions.Get(ctx, volume.ID, resize.ID)); got.Status != "completed" || got.CompletedAt == nil {
		t.Errorf("action %+v", got)
	}

	snapshot := must[*godo.Snapshot](t)(client.Storage.CreateSnapshot(ctx, &godo.SnapshotCreateRequest{VolumeID: volume.ID, Name: "first", Tags: []string{"better-compute"}}))
	if snapshot.ResourceID != volume.ID || snapshot.ResourceType != "volume" || snapshot.MinDiskSize != 20 || snapshot.SizeGigaBytes != 0 ||
		!slices.Equal(snapshot.Regions, []string{"fra1"}) {
		t.Errorf("snapshot %+v", snapshot)
	}
	detach := must[*godo.Action](t)(client.StorageActions.DetachByDropletID(ctx, volume.ID, droplet.ID))
	finished(t, client, detach.ID)
	if actions := must[[]godo.Action](t)(client.StorageActions.List(ctx, volume.ID, nil)); len(actions) != 3 || actions[0].Type != "detach_volume" {
		t.Errorf("actions %+v", actions)
	}
	if own := must[[]godo.Snapshot](t)(client.Storage.ListSnapshots(ctx, volume.ID, nil)); len(own) != 1 || own[0].ID != snapshot.ID {
		t.Errorf("the volume's snapshots: %+v", own)
	}
	done(t)(client.Storage.DeleteVolume(ctx, volume.ID))
	if _, _, err := client.Storage.GetVolume(ctx, volume.ID); err != nil {
		refusal(t, err, 404, "could not be found")
	} else {
		t.Error("still there")
	}

	// The snapshot outlives the volume, and its size wins over what is asked for.
	if got := must[*godo.Snapshot](t)(client.Snapshots.Get(ctx, snapshot.ID)); got.Name != "first" || got.SizeGigaBytes == 0 {
		t.Errorf("snapshot %+v", got)
	}
	again := must[*godo.Volume](t)(client.Storage.CreateVolume(ctx, &godo.VolumeCreateRequest{Name: "again", Region: "fra1", SizeGigaBytes: 50, SnapshotID: snapshot.ID}))
	if again.SizeGigaBytes != 20 || again.FilesystemType != "xfs" {
		t.Errorf("from a snapshot: %+v", again)
	}
	for _, list := range [][]godo.Snapshot{
		must[[]godo.Snapshot](t)(client.Snapshots.List(ctx, nil)),
		must[[]godo.Snapshot](t)(client.Snapshots.ListVolume(ctx, &godo.ListOptions{PerPage: 200})),
		must[[]godo.Snapshot](t)(client.Snapshots.ListVolumeSnapshotByRegion(ctx, "fra1", nil)),
	} {
		if len(list) != 1 || list[0].ID != snapshot.ID {
			t.Errorf("snapshots %+v", list)
		}
	}
	if list := must[[]godo.Snapshot](t)(client.Snapshots.ListVolumeSnapshotByRegion(ctx, "nyc1", nil)); len(list) != 0 {
		t.Errorf("snapshots in another region: %+v", list)
	}
	done(t)(client.Storage.DeleteSnapshot(ctx, snapshot.ID))
	if _, err := client.Snapshots.Delete(ctx, snapshot.ID); err != nil {
		refusal(t, err, 404, "could not be found")
	} else {
		t.Error("deleted twice")
	}
}

// TestVolumeTags tags volumes and snapshots, and finds no trace of them when
// they are gone.
func TestVolumeTags(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	ctx := t.Context()
	volume := must[*godo.Volume](t)(client.Storage.CreateVolume(ctx, &godo.VolumeCreateRequest{Name: "v", Region: "fra1", SizeGigaBytes: 1, Tags: []string{"Web"}}))
	snapshot := must[*godo.Snapshot](t)(client.Storage.CreateSnapshot(ctx, &godo.SnapshotCreateRequest{VolumeID: volume.ID, Name: "s"}))
	resources := []godo.Resource{{ID: volume.ID, Type: "volume"}, {ID: snapshot.ID, Type: "volume_snapshot"}}
	must[*godo.Tag](t)(client.Tags.Create(ctx, &godo.TagCreateRequest{Name: "more"}))
	done(t)(client.Tags.TagResources(ctx, "more", &godo.TagResourcesRequest{Resources: resources}))
	if tag := must[*godo.Tag](t)(client.Tags.Get(ctx, "MORE")); tag.Resources.Count != 2 {
		t.Errorf("tag %+v", tag.Resources)
	}
	if got := s.Volumes()[0].Tags; !slices.Equal(got, []string{"Web", "more"}) {
		t.Errorf("tags %v", got)
	}
	done(t)(client.Tags.UntagResources(ctx, "web", &godo.UntagResourcesRequest{Resources: resources[:1]}))
	if got := s.Volumes()[0].Tags; !slices.Equal(got, []string{"more"}) {
		t.Errorf("tags %v", got)
	}
	done(t)(client.Storage.DeleteVolume(ctx, volume.ID))
	if got := must[*godo.Snapshot](t)(client.Snapshots.Get(ctx, snapshot.ID)); !slices.Equal(got.Tags, []string{"more"}) {
		t.Errorf("the snapshot's tags %v", got.Tags)
	}
	done(t)(client.Snapshots.Delete(ctx, snapshot.ID))
	if tag := must[*godo.Tag](t)(client.Tags.Get(ctx, "more")); tag.Resources.Count != 0 {
		t.Errorf("tag %+v", tag.Resources)
	}
}

// TestVolumeRules sends what the API refuses, and looks at how it says so.
func TestVolumeRules(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{SnapshotInterval: -1, VolumeLimit: 20})
	handler := described(t, s, openapitest.AnswersOnly())
	a, b, far := makeDroplet(t, s, "a", "fra1"), makeDroplet(t, s, "b", "fra1"), makeDroplet(t, s, "far", "nyc1")
	var volumes []string
	for i := range 16 {
		volumes = append(volumes, makeVolume(t, handler, newVolume(fmt.Sprintf("v%d", i))))
	}
	attach := func(droplet int64) string { return fmt.Sprintf(`{"type":"attach","droplet_id":%d}`, droplet) }
	detach := func(droplet int64) string { return fmt.Sprintf(`{"type":"detach","droplet_id":%d}`, droplet) }
	for _, id := range volumes[:15] {
		if status, body, _ := do(t, handler, "POST", "/v2/volumes/"+id+"/actions", attach(a)); status != 202 {
			t.Fatalf("attach: %d %s", status, body)
		}
	}
	attached, free := "/v2/volumes/"+volumes[0], "/v2/volumes/"+volumes[15]
	makeOne(t, handler, free+"/snapshots", "snapshot", `{"name":"s"}`)
	elsewhere := makeOne(t, handler, free+"/snapshots", "snapshot", `{"name":"t"}`)
	change := func(old, new string) string { return strings.Replace(newVolume("w"), old, new, 1) }
	const nowhere = "/v2/volumes/506f78a4-e098-11e5-ad9f-000f53306ae1"
	long := strings.Repeat("x", 64)

	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v2/volumes", newVolume("v1"), 409, "already exists"},
		{"POST", "/v2/volumes", newVolume("Upper"), 422, "name is invalid"},
		{"POST", "/v2/volumes", newVolume("1st"), 422, "name is invalid"},
		{"POST", "/v2/volumes", newVolume("a_b"), 422, "name is invalid"},
		{"POST", "/v2/volumes", newVolume(long + "x"), 422, "name is invalid"},
		{"POST", "/v2/volumes", change(":10", ":0"), 422, "size_gigabytes"},
		{"POST", "/v2/volumes", change(":10", ":16385"), 422, "size_gigabytes"},
		{"POST", "/v2/volumes", change("fra1", "mars"), 422, "Region is not available"},
		{"POST", "/v2/volumes", change("fra1", "sfo2"), 422, "Region is not available"},
		{"POST", "/v2/volumes", change("fra1", "ric1"), 422, "does not support volumes"},
		{"POST", "/v2/volumes", change("}", `,"filesystem_type":"ntfs"}`), 422, "filesystem_type"},
		{"POST", "/v2/volumes", change("}", `,"filesystem_type":"ext4","filesystem_label":"12345678901234567"}`), 422, "filesystem_label"},
		{"POST", "/v2/volumes", change("}", `,"filesystem_type":"xfs","filesystem_label":"1234567890123"}`), 422, "filesystem_label"},
		{"POST", "/v2/volumes", change("}", `,"tags":["a=b"]}`), 422, "Tag name"},
		{"POST", "/v2/volumes", change("}", `,"snapshot_id":"none"}`), 404, "not_found"},
		{"POST", "/v2/volumes", change(`fra1","size_gigabytes":10`, fmt.Sprintf(`nyc1","snapshot_id":%q`, elsewhere)), 422, "another region"},
		{"POST", "/v2/volumes", "{", 400, "bad_request"},
		{"POST", "/v2/volumes", change(":10", `:"10"`), 422, "size_gigabytes"},
		{"GET", nowhere, "", 404, "not_found"},
		{"DELETE", nowhere, "", 404, "not_found"},
		{"DELETE", "/v2/volumes?name=v1&region=nyc1", "", 404, "not_found"},
		{"DELETE", "/v2/volumes?name=v1&region=fra1", "", 409, "attached volume cannot be deleted"},
		{"DELETE", attached, "", 409, `"id":"conflict"`},
		{"POST", attached + "/actions", attach(a), 422, "This volume is already attached"},
		{"POST", attached + "/actions", attach(b), 422, "This volume is already attached"},
		{"POST", free + "/actions", attach(a), 422, "cannot attach more volumes to the Droplet"},
		{"POST", free + "/actions", attach(far), 422, "same region"},
		{"POST", free + "/actions", attach(7), 404, "not_found"},
		{"POST", free + "/actions", `{"type":"attach","droplet_id":1,"region":"nyc1"}`, 422, "another region"},
		{"POST", free + "/actions", detach(a), 422, "Attachment not found"},
		{"POST", attached + "/actions", detach(b), 422, "Attachment not found"},
		{"POST", attached + "/actions", `{"type":"detach"}`, 422, "Attachment not found"},
		{"POST", attached + "/actions", `{"type":"resize","size_gigabytes":10}`, 422, "larger than the current size"},
		{"POST", attached + "/actions", `{"type":"resize","size_gigabytes":16385}`, 422, "at most 16384"},
		{"POST", attached + "/actions", `{"type":"format"}`, 422, "type must be"},
		{"POST", "/v2/volumes/actions", `{"type":"resize","volume_name":"v1","region":"fra1","size_gigabytes":20}`, 422, "type must be"},
		{"POST", "/v2/volumes/actions", `{"type":"attach","volume_name":"v1","region":"nyc1","droplet_id":1}`, 404, "not_found"},
		{"GET", free + "/actions/1", "", 404, "not_found"},
		{"GET", nowhere + "/actions", "", 404, "not_found"},
		{"GET", nowhere + "/snapshots", "", 404, "not_found"},
		{"POST", free + "/snapshots", `{"name":"s"}`, 409, "already exists"},
		{"POST", free + "/snapshots", `{}`, 422, "blank"},
		{"GET", "/v2/snapshots/136681983", "", 400, "the resource is not a snapshot"},
		{"GET", "/v2/snapshots/7", "", 404, "not_found"},
		{"GET", "/v2/snapshots?resource_type=nfs", "", 400, "resource_type"},
		{"GET", "/v2/volumes/snapshots/" + elsewhere, "", 200, `"name":"t"`},
		{"DELETE", "/v2/volumes/snapshots/" + elsewhere, "", 204, ""},
		{"DELETE", "/v2/volumes/snapshots/" + elsewhere, "", 404, "not_found"},
		{"GET", "/v2/volumes?per_page=10", "", 200, `page=2`},
		{"GET", "/v2/volumes?page=0", "", 400, "page"},
		{"POST", "/v2/volumes", newVolume(long), 201, long},
		{"POST", "/v2/volumes", change("}", `,"tags":null,"snapshot_id":"","filesystem_type":"","filesystem_label":"","description":""}`), 201, `"tags":[]`},
		{"DELETE", "/v2/volumes?name=w&region=fra1", "", 204, ""},
		{"POST", "/v2/volumes/actions", fmt.Sprintf(`{"type":"detach","volume_name":"v0","region":"fra1","droplet_id":%d}`, a), 202, "detach_volume"},
		{"POST", "/v2/volumes/actions", fmt.Sprintf(`{"type":"attach","volume_name":"v0","region":"fra1","droplet_id":%d,"tags":["x"]}`, b), 202, "attach_volume"},
		{"GET", attached, "", 200, `"tags":["x"]`},
	} {
		status, body, _ := do(t, handler, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.90s: %d %s", test.method, test.path, test.body, status, body)
		}
	}
	if got := s.Volumes(); len(got) != 17 || got[0].Droplet != b {
		t.Errorf("%d volumes, the first %+v", len(got), got[0])
	}
	for i := range 3 {
		makeVolume(t, handler, newVolume(fmt.Sprintf("more%d", i)))
	}
	if status, body, _ := do(t, handler, "POST", "/v2/volumes", newVolume("toomany")); status != 403 || !strings.Contains(body, "capacity limit exceeded") {
		t.Errorf("over the account's limit: %d %s", status, body)
	}
}

// TestVolumeDrift uses what Go tests change behind the API's back, and carries
// the result over in a snapshot of the state.
func TestVolumeDrift(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	droplet := makeDroplet(t, s, "a", "fra1")
	v := makeVolume(t, s, `{"name":"v","region":"fra1","size_gigabytes":10,"tags":["better-compute"]}`)
	snapshot := makeOne(t, s, "/v2/volumes/"+v+"/snapshots", "snapshot", `{"name":"s","tags":["better-compute"]}`)
	want := emulator.Object{ID: v, Name: "v", State: "available", Managed: true}
	if rows := s.Objects(); len(rows.Volumes) != 1 || rows.Volumes[0] != want || len(rows.Snapshots) != 1 ||
		rows.Snapshots[0] != (emulator.Object{ID: snapshot, Name: "s", State: "available", Managed: true}) {
		t.Errorf("rows %+v", rows)
	}
	if !s.AttachVolume(v, droplet) || !s.SetVolumeSize(v, 99) || !s.SetVolumeTags(v) || !s.SetVolumeSnapshotTags(snapshot, "x") {
		t.Error("there is no such volume")
	}
	state, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored := digitalocean.New(digitalocean.Options{})
	if err := restored.Restore(state); err != nil {
		t.Fatal(err)
	}
	if got := restored.Volumes()[0]; got.Droplet != droplet || got.Size != 99 || len(got.Tags) != 0 {
		t.Errorf("restored %+v", got)
	}
	if rows := restored.Objects(); rows.Volumes[0].Managed || rows.Volumes[0].State != "attached" || rows.Snapshots[0].Managed {
		t.Errorf("rows %+v", rows)
	}
	if status, body, _ := do(t, restored, "POST", "/v2/volumes/"+v+"/snapshots", `{"name":"t"}`); status != 429 {
		t.Errorf("the interval was forgotten: %d %s", status, body)
	}
	if !s.AttachVolume(v, 0) || s.Volumes()[0].Droplet != 0 || !s.DeleteVolume(v) || s.DeleteVolume(v) || len(s.Volumes()) != 0 {
		t.Error("delete")
	}
	if !s.DeleteVolumeSnapshot(snapshot) || s.DeleteVolumeSnapshot(snapshot) || len(s.VolumeSnapshots()) != 0 {
		t.Error("delete snapshot")
	}
}

// TestVolumePages reads more volumes than a page holds.
func TestVolumePages(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	for i := range 25 {
		makeVolume(t, s, newVolume("v"+strconv.Itoa(i)))
	}
	volumes, response, err := client.Storage.ListVolumes(t.Context(), &godo.ListVolumeParams{ListOptions: &godo.ListOptions{Page: 2, PerPage: 10}})
	if err != nil || len(volumes) != 10 || response.Meta.Total != 25 || response.Links.IsLastPage() {
		t.Errorf("%d volumes, %+v, %v", len(volumes), response, err)
	}
	if page, err := response.Links.CurrentPage(); err != nil || page != 2 {
		t.Errorf("page %d, %v", page, err)
	}
}

// TestDropletVolumes makes Droplets with volumes that they can't have, and looks
// at Droplets' snapshots among those of volumes.
func TestDropletVolumes(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	handler := described(t, s)
	far := makeVolume(t, handler, `{"name":"far","region":"nyc1","size_gigabytes":1}`)
	taken := makeVolume(t, handler, newVolume("taken"))
	droplet := makeDroplet(t, s, "a", "fra1")
	s.AttachVolume(taken, droplet)
	for _, test := range []struct {
		volume string
		status int
		want   string
	}{
		{"506f78a4-e098-11e5-ad9f-000f53306ae1", 404, "not_found"},
		{far, 422, "same region"},
		{taken, 422, "This volume is already attached"},
	} {
		body := fmt.Sprintf(`{"name":"b","region":"fra1","size":"s-1vcpu-1gb","image":"debian-12-x64","volumes":[%q]}`, test.volume)
		if status, answer, _ := do(t, handler, "POST", "/v2/droplets", body); status != test.status || !strings.Contains(answer, test.want) {
			t.Errorf("a Droplet with %s: %d %s", test.volume, status, answer)
		}
	}
	if len(s.Droplets()) != 1 {
		t.Errorf("refused calls had an effect: %+v", s.Droplets())
	}

	own := makeOne(t, handler, "/v2/volumes/"+taken+"/snapshots", "snapshot", `{"name":"of-volume"}`)
	if status, body, _ := do(t, handler, "POST", fmt.Sprintf("/v2/droplets/%d/actions", droplet), `{"type":"snapshot","name":"of-droplet"}`); status != 201 {
		t.Fatalf("snapshot of a Droplet: %d %s", status, body)
	}
	var list struct {
		Snapshots []godo.Snapshot `json:"snapshots"`
	}
	_, body, _ := do(t, handler, "GET", "/v2/snapshots", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Snapshots) != 2 || list.Snapshots[0].Name != "of-droplet" || list.Snapshots[1].ID != own {
		t.Fatalf("all snapshots: %s %v", body, err)
	}
	one := "/v2/snapshots/" + list.Snapshots[0].ID
	for _, test := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v2/snapshots?resource_type=droplet", 200, `"total":1`},
		{"GET", "/v2/snapshots?resource_type=volume", 200, own},
		{"GET", one, 200, `"resource_type":"droplet"`},
		{"GET", "/v2/volumes/snapshots/" + list.Snapshots[0].ID, 404, "not_found"},
		{"DELETE", one, 204, ""},
		{"DELETE", one, 404, "not_found"},
		{"DELETE", "/v2/snapshots/136681983", 400, "not a snapshot"},
	} {
		if status, body, _ := do(t, handler, test.method, test.path, ""); status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, body)
		}
	}
}
