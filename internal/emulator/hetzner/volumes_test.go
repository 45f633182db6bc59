// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

func newVolume(name string) string {
	return fmt.Sprintf(`{"name":%q,"size":10,"location":"fsn1"}`, name)
}

// TestVolumeClient walks through a volume's life with the vendor's own client.
func TestVolumeClient(t *testing.T) {
	s := hetzner.New(hetzner.Options{Boot: 8 * time.Millisecond})
	client := serve(t, s, quick())
	ctx := t.Context()

	made := must[hcloud.ServerCreateResult](t)(client.Server.Create(ctx, hcloud.ServerCreateOpts{
		Name: "web-0", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"}, Location: &hcloud.Location{Name: "nbg1"},
	}))
	wait(t, client, append(made.NextActions, made.Action)...)
	server := made.Server

	created := must[hcloud.VolumeCreateResult](t)(client.Volume.Create(ctx, hcloud.VolumeCreateOpts{
		Name: "data_1.x", Size: 10, Location: &hcloud.Location{Name: "nbg1"}, Format: new(hcloud.VolumeFormatXFS),
		Labels: map[string]string{"better-compute.io/managed": "true"},
	}))
	volume := created.Volume
	switch {
	case volume.Status != hcloud.VolumeStatusCreating, created.Action.Status != hcloud.ActionStatusRunning, created.Action.Command != "create_volume",
		len(created.NextActions) != 0:
		t.Errorf("created %+v", created)
	case volume.LinuxDevice != fmt.Sprintf("/dev/disk/by-id/scsi-0HC_Volume_%d", volume.ID), *volume.Format != "xfs", volume.Server != nil,
		volume.Location.Name != "nbg1", volume.Size != 10:
		t.Errorf("volume %+v", volume)
	}
	wait(t, client, created.Action)
	volume = must[*hcloud.Volume](t)(client.Volume.GetByName(ctx, "data_1.x"))
	if volume.Status != hcloud.VolumeStatusAvailable {
		t.Errorf("status %s", volume.Status)
	}

	wait(t, client, must[*hcloud.Action](t)(client.Volume.AttachWithOpts(ctx, volume, hcloud.VolumeAttachOpts{Server: server, Automount: new(false)})))
	volume = must[*hcloud.Volume](t)(client.Volume.GetByID(ctx, volume.ID))
	server = must[*hcloud.Server](t)(client.Server.GetByID(ctx, server.ID))
	if volume.Server == nil || volume.Server.ID != server.ID || len(server.Volumes) != 1 || server.Volumes[0].ID != volume.ID {
		t.Errorf("attached: %+v, %+v", volume.Server, server.Volumes)
	}
	wait(t, client, must[*hcloud.Action](t)(client.Volume.Resize(ctx, volume, 12)))
	wait(t, client, must[*hcloud.Action](t)(client.Volume.Detach(ctx, volume)))
	wait(t, client, must[*hcloud.Action](t)(client.Volume.Resize(ctx, volume, 15)))
	if got := s.Volumes()[0]; got.Size != 15 || got.Server != 0 {
		t.Errorf("resized and detached: %+v", got)
	}

	volume = must[*hcloud.Volume](t)(client.Volume.Update(ctx, volume, hcloud.VolumeUpdateOpts{Name: "b", Labels: map[string]string{"a": "b"}}))
	if volume.Name != "b" || len(volume.Labels) != 1 {
		t.Errorf("updated: %+v", volume)
	}
	wait(t, client, must[*hcloud.Action](t)(client.Volume.ChangeProtection(ctx, volume, hcloud.VolumeChangeProtectionOpts{Delete: new(true)})))
	if _, err := client.Volume.Delete(ctx, volume); !hcloud.IsError(err, hcloud.ErrorCodeProtected) {
		t.Errorf("deleting a protected volume: %v", err)
	}
	wait(t, client, must[*hcloud.Action](t)(client.Volume.ChangeProtection(ctx, volume, hcloud.VolumeChangeProtectionOpts{Delete: new(false)})))

	actions, err := client.Volume.Action.All(ctx, hcloud.ActionListOpts{Sort: []string{"id"}})
	if err != nil {
		t.Fatal(err)
	}
	commands := make([]string, len(actions))
	for i, action := range actions {
		commands[i] = action.Command
	}
	if want := []string{"create_volume", "attach_volume", "resize_volume", "detach_volume", "resize_volume", "change_protection", "change_protection"}; !slices.Equal(commands, want) {
		t.Errorf("actions %v", commands)
	}
	of, _, err := client.Volume.Action.List(ctx, hcloud.ActionListOpts{Status: []hcloud.ActionStatus{hcloud.ActionStatusSuccess}})
	if err != nil || len(of) != len(commands) {
		t.Errorf("actions of all volumes: %v %v", of, err)
	}
	if resources := actions[1].Resources; len(resources) != 2 || resources[0].ID != server.ID || resources[1].ID != volume.ID {
		t.Errorf("resources of the attachment: %+v", resources)
	}

	if _, err := client.Volume.Delete(ctx, volume); err != nil {
		t.Fatal(err)
	}
	if gone := must[*hcloud.Volume](t)(client.Volume.GetByID(ctx, volume.ID)); gone != nil {
		t.Errorf("still there: %+v", gone)
	}
	if action := must[*hcloud.Action](t)(client.Action.GetByID(ctx, created.Action.ID)); action == nil {
		t.Error("the action went with its volume")
	}
}

// TestVolumeWithServer makes a volume on a server and a server with volumes, and
// deletes the servers.
func TestVolumeWithServer(t *testing.T) {
	s := hetzner.New(hetzner.Options{Boot: 8 * time.Millisecond})
	client := serve(t, s, quick())
	ctx := t.Context()
	opts := hcloud.ServerCreateOpts{
		Name: "a", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"}, Location: &hcloud.Location{Name: "hel1"},
	}
	first := must[hcloud.ServerCreateResult](t)(client.Server.Create(ctx, opts))
	wait(t, client, append(first.NextActions, first.Action)...)
	created := must[hcloud.VolumeCreateResult](t)(client.Volume.Create(ctx, hcloud.VolumeCreateOpts{Name: "v", Size: 10, Server: first.Server, Automount: new(true), Format: new("ext4")}))
	if len(created.NextActions) != 1 || created.NextActions[0].Command != "attach_volume" || created.Volume.Location.Name != "hel1" {
		t.Errorf("created %+v", created)
	}
	wait(t, client, append(created.NextActions, created.Action)...)
	if got := s.Volumes()[0]; got.Server != first.Server.ID || got.Status != "available" {
		t.Errorf("volume %+v", got)
	}
	deleted := must[*hcloud.ServerDeleteResult](t)(client.Server.DeleteWithResult(ctx, first.Server))
	wait(t, client, deleted.Action)
	if got := s.Volumes()[0]; got.Server != 0 {
		t.Errorf("after its server: %+v", got)
	}

	opts.Name, opts.Volumes, opts.Automount = "b", []*hcloud.Volume{created.Volume}, new(true)
	second := must[hcloud.ServerCreateResult](t)(client.Server.Create(ctx, opts))
	wait(t, client, append(second.NextActions, second.Action)...)
	if got := s.Volumes()[0]; got.Server != second.Server.ID || s.Servers()[0].Status != "running" {
		t.Errorf("volume %+v, server %+v", got, s.Servers()[0])
	}
}

// TestVolumeRules sends what the API refuses, and looks at how it says so.
func TestVolumeRules(t *testing.T) {
	s := hetzner.New(hetzner.Options{VolumeLimit: 17})
	handler := described(t, s, openapitest.AnswersOnly())
	post := func(path, body string) {
		t.Helper()
		if status, answer, _ := do(t, handler, "POST", path, body); status != 201 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
	post("/v1/servers", `{"name":"a","server_type":"cx23","image":"debian-12","location":"fsn1"}`)
	post("/v1/servers", `{"name":"b","server_type":"cx23","image":"debian-12","location":"nbg1"}`)
	for i := range 17 {
		post("/v1/volumes", newVolume(fmt.Sprintf("v%d", i)))
	}
	a, b, volumes := s.Servers()[0].ID, s.Servers()[1].ID, s.Volumes()
	for _, v := range volumes[:16] {
		post(fmt.Sprintf("/v1/volumes/%d/actions/attach", v.ID), fmt.Sprintf(`{"server":%d}`, a))
	}
	attached, free := fmt.Sprintf("/v1/volumes/%d", volumes[0].ID), fmt.Sprintf("/v1/volumes/%d", volumes[16].ID)
	change := func(old, new string) string { return strings.Replace(newVolume("w"), old, new, 1) }
	on := func(server int64) string { return fmt.Sprintf(`{"server":%d}`, server) }
	withVolumes := func(ids ...int64) string {
		return strings.ReplaceAll(fmt.Sprintf(`{"name":"c","server_type":"cx23","image":"debian-12","location":"fsn1","volumes":%v}`, ids), " ", ",")
	}

	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/volumes", newVolume("v1"), 409, `"code":"uniqueness_error","details":{"fields":[{"name":"name"}]},"message":"volume name is already used"`},
		{"POST", "/v1/volumes", newVolume(strings.Repeat("x", 65)), 422, `"name":"name"`},
		{"POST", "/v1/volumes", newVolume("-x"), 422, `"name":"name"`},
		{"POST", "/v1/volumes", change("10", "9"), 422, "between 10 and 10240"},
		{"POST", "/v1/volumes", change("10", "10241"), 422, "between 10 and 10240"},
		{"POST", "/v1/volumes", change("10", "10.5"), 422, `"name":"size"`},
		{"POST", "/v1/volumes", `{"name":"w","size":10}`, 422, `"name":"location"`},
		{"POST", "/v1/volumes", change("}", fmt.Sprintf(`,"server":%d}`, b)), 422, "exclude each other"},
		{"POST", "/v1/volumes", change("fsn1", "mars"), 422, "location 'mars' not found"},
		{"POST", "/v1/volumes", change("}", `,"automount":true}`), 422, `"name":"automount"`},
		{"POST", "/v1/volumes", change("}", `,"format":"ntfs"}`), 422, `"name":"format"`},
		{"POST", "/v1/volumes", change("}", `,"labels":{"-":""}}`), 422, `"name":"labels"`},
		{"POST", "/v1/volumes", `{"name":"w","size":10,"server":7}`, 404, "server with ID '7' not found"},
		{"POST", "/v1/volumes", fmt.Sprintf(`{"name":"w","size":10,"server":%d}`, a), 403, "resource_limit_exceeded"},
		{"POST", "/v1/volumes", newVolume("w"), 403, `"limits":[{"name":"volume_limit"}]`},
		{"GET", "/v1/volumes/7", "", 404, "volume with ID '7' not found"},
		{"PUT", free, `{"name":"v1"}`, 409, "uniqueness_error"},
		{"PUT", free, `{"name":"a b"}`, 422, `"name":"name"`},
		{"DELETE", attached, "", 422, "is still attached to a server"},
		{"POST", free + "/actions/attach", `{}`, 422, `"name":"server"`},
		{"POST", free + "/actions/attach", `{"server":7}`, 404, "server with ID '7' not found"},
		{"POST", free + "/actions/attach", on(a), 403, "resource_limit_exceeded"},
		{"POST", free + "/actions/attach", on(b), 422, `"code":"service_error","details":null,"message":"server and volume must be in the same location"`},
		{"POST", attached + "/actions/attach", on(b), 422, "volume is already attached to a server, please detach it first"},
		{"POST", free + "/actions/detach", "{}", 422, "volume not attached to a server"},
		{"POST", attached + "/actions/resize", `{"size":10}`, 422, "greater than the current size"},
		{"POST", attached + "/actions/resize", `{"size":10241}`, 422, "at most 10240"},
		{"POST", "/v1/volumes/7/actions/resize", `{"size":20}`, 404, "not_found"},
		{"POST", "/v1/servers", withVolumes(7), 404, "volume with ID '7' not found"},
		{"POST", "/v1/servers", withVolumes(volumes[0].ID), 422, "already attached"},
		{"POST", "/v1/servers", withVolumes(volumes[16].ID, volumes[16].ID), 422, "twice"},
		{"POST", "/v1/servers", strings.Replace(withVolumes(volumes[16].ID), "fsn1", "nbg1", 1), 422, "same location"},
		{"GET", "/v1/volumes?status=error", "", 422, `"name":"status"`},
		{"GET", "/v1/volumes?sort=size", "", 422, `"name":"sort"`},
		{"GET", "/v1/volumes?status=available&name=v16", "", 200, `"total_entries":1`},
		{"GET", "/v1/volumes?status=creating", "", 200, `"total_entries":0`},
		{"GET", "/v1/volumes?per_page=5&sort=id:desc", "", 200, `"next_page":2`},
		{"GET", "/v1/volumes/7/actions", "", 404, "not_found"},
		{"GET", free + "/actions", "", 200, `"total_entries":1`},
		{"GET", free + "/actions/7", "", 404, "action with ID '7' not found"},
		{"PUT", free, `{"labels":{"k":"v"}}`, 200, `"labels":{"k":"v"}`},
		{"GET", "/v1/volumes?label_selector=k%3Dv", "", 200, `"total_entries":1`},
	} {
		status, body, _ := do(t, handler, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.80s: %d %s", test.method, test.path, test.body, status, body)
		}
	}
	if got := s.Volumes(); len(got) != 17 || len(s.Servers()) != 2 {
		t.Errorf("refused calls had an effect: %d volumes, %d servers", len(got), len(s.Servers()))
	}
}

// TestVolumeTime watches the locks by the clock, and takes a half-made volume
// over from a snapshot of the state.
func TestVolumeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{Boot: 40 * time.Second})
		client := hcloud.NewClient(hcloud.WithToken("x"), hcloud.WithEndpoint("http://hetzner.test/v1"),
			hcloud.WithHTTPClient(&http.Client{Transport: emulator.Transport(described(t, s))}))
		ctx := t.Context()
		made := must[hcloud.ServerCreateResult](t)(client.Server.Create(ctx, hcloud.ServerCreateOpts{
			Name: "a", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "debian-12"},
		}))
		volumeOpts := hcloud.VolumeCreateOpts{Name: "v", Size: 10, Location: made.Server.Location}
		volume := must[hcloud.VolumeCreateResult](t)(client.Volume.Create(ctx, volumeOpts)).Volume
		locked := func(what string, err error) {
			t.Helper()
			if !hcloud.IsError(err, hcloud.ErrorCodeLocked) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, _, err := client.Volume.Resize(ctx, volume, 20)
		locked("resizing while it is made", err)
		_, err = client.Volume.Delete(ctx, volume)
		locked("deleting while it is made", err)

		snapshot, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if got := s.Volumes()[0]; got.Status != "available" || got.Locked {
			t.Errorf("after 10 s: %+v", got)
		}
		restored := hetzner.New(hetzner.Options{})
		if err := restored.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if got := restored.Volumes(); len(got) != 1 || got[0].Status != "available" {
			t.Errorf("restored: %+v", got)
		}

		_, _, err = client.Volume.Attach(ctx, volume, made.Server)
		locked("attaching while the server is made", err)
		<-time.After(30 * time.Second)
		attach := must[*hcloud.Action](t)(client.Volume.Attach(ctx, volume, made.Server))
		_, _, err = client.Volume.Detach(ctx, volume)
		locked("detaching while it is attached", err)
		_, _, err = client.Server.Poweroff(ctx, made.Server)
		locked("stopping the server meanwhile", err)
		second := must[hcloud.VolumeCreateResult](t)(client.Volume.Create(ctx, hcloud.VolumeCreateOpts{Name: "w", Size: 10, Location: made.Server.Location})).Volume
		if got := s.Volumes()[0]; got.Server != 0 {
			t.Errorf("attached at once: %+v", got)
		}
		wait(t, client, attach)
		if got := s.Volumes()[0]; got.Server != made.Server.ID {
			t.Errorf("attached: %+v", got)
		}
		resize := must[*hcloud.Action](t)(client.Volume.Resize(ctx, volume, 20))
		<-time.After(5 * time.Second)
		wait(t, client, resize)
		attach = must[*hcloud.Action](t)(client.Volume.Attach(ctx, second, made.Server))
		_, _, err = client.Volume.Detach(ctx, volume)
		locked("detaching while the server is locked", err)
		wait(t, client, attach)
	})
}

// TestVolumeFaults sets each fault that concerns volumes in a way of its own.
func TestVolumeFaults(t *testing.T) {
	for _, test := range []struct {
		kind   emulator.Kind
		status int
		body   string
	}{
		{emulator.KindLocked, 423, "volume is locked"},
		{emulator.KindCapacity, 422, `"code":"no_space_left_in_location"`},
		{emulator.KindRateLimitHour, 429, "rate_limit_exceeded"},
	} {
		s := hetzner.New(hetzner.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: test.kind})
		handler := described(t, s)
		if status, body, _ := do(t, handler, "POST", "/v1/volumes", newVolume("v")); status != test.status || !strings.Contains(body, test.body) || len(s.Volumes()) != 0 {
			t.Errorf("%s: %d %s", test.kind, status, body)
		}
		if status, body, _ := do(t, handler, "POST", "/v1/volumes", newVolume("v")); status != 201 {
			t.Errorf("after %s: %d %s", test.kind, status, body)
		}
	}

	s := hetzner.New(hetzner.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindLoseAnswer})
	if _, _, _, err := try(t.Context(), s, "POST", "/v1/volumes", newVolume("v")); err == nil || len(s.Volumes()) != 1 {
		t.Errorf("lost answer: %v, %d volumes", err, len(s.Volumes()))
	}
	one := fmt.Sprintf("/v1/volumes/%d", s.Volumes()[0].ID)
	do(t, s, "POST", "/v1/servers", `{"name":"a","server_type":"cx23","image":"debian-12","location":"fsn1"}`)
	server := s.Servers()[0].ID
	for _, action := range []struct{ name, body string }{
		{"resize", `{"size":20}`}, {"attach", fmt.Sprintf(`{"server":%d}`, server)}, {"detach", `{}`}, {"change_protection", `{"delete":true}`},
	} {
		if action.name == "detach" {
			s.AttachVolume(s.Volumes()[0].ID, server)
		}
		before := fmt.Sprint(s.Volumes())
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*/actions/" + action.name, Kind: emulator.KindFailAction})
		if status, body, _ := do(t, s, "POST", one+"/actions/"+action.name, action.body); status != 201 {
			t.Errorf("%s that fails: %d %s", action.name, status, body)
		}
		if after := fmt.Sprint(s.Volumes()); after != before {
			t.Errorf("%s that failed: %s", action.name, after)
		}
	}
	if _, body, _ := do(t, s, "GET", one+"/actions?status=error", ""); strings.Count(body, `"code":"action_failed"`) != 4 {
		t.Errorf("failed actions: %s", body)
	}

	addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindFailAction})
	do(t, s, "POST", "/v1/volumes", fmt.Sprintf(`{"name":"w","size":10,"server":%d}`, server))
	if got := s.Volumes()[1]; got.Status != "creating" || got.Server != 0 || got.Locked {
		t.Errorf("a volume whose making failed: %+v", got)
	}
}

func TestHiddenVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hetzner.New(hetzner.Options{})
		addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindHideFromLists, Delay: emulator.Duration(5 * time.Second)})
		do(t, s, "POST", "/v1/volumes", newVolume("v"))
		if _, body, _ := do(t, s, "GET", "/v1/volumes", ""); !strings.Contains(body, `"total_entries":0`) {
			t.Errorf("listed at once: %s", body)
		}
		if status, _, _ := do(t, s, "GET", fmt.Sprintf("/v1/volumes/%d", s.Volumes()[0].ID), ""); status != 200 {
			t.Errorf("get by id: %d", status)
		}
		<-time.After(5 * time.Second)
		if _, body, _ := do(t, s, "GET", "/v1/volumes", ""); !strings.Contains(body, `"total_entries":1`) {
			t.Errorf("never listed: %s", body)
		}
	})
}

// TestVolumeDrift uses what Go tests change behind the API's back.
func TestVolumeDrift(t *testing.T) {
	s := hetzner.New(hetzner.Options{Boot: time.Hour})
	do(t, s, "POST", "/v1/servers", newServer)
	server := s.Servers()[0].ID
	do(t, s, "POST", "/v1/volumes", `{"name":"v","size":10,"location":"fsn1","labels":{"better-compute.io/managed":"true"}}`)
	id := s.Volumes()[0].ID
	if rows := s.Objects().Volumes; len(rows) != 1 || rows[0] != (emulator.Object{ID: fmt.Sprint(id), Name: "v", State: "creating", Managed: true}) {
		t.Errorf("rows %+v", rows)
	}
	if !s.AttachVolume(id, server) || !s.SetVolumeSize(id, 99) || !s.SetVolumeName(id, "w") || !s.SetVolumeLabels(id, nil) {
		t.Error("there is no such volume")
	}
	if got := s.Volumes()[0]; got.Server != server || got.Size != 99 || got.Name != "w" || len(got.Labels) != 0 || s.Objects().Volumes[0].Managed {
		t.Errorf("changed: %+v", got)
	}
	if !s.Delete(server) || s.Volumes()[0].Server != 0 {
		t.Error("a deleted server keeps its volume")
	}
	if !s.DeleteVolume(id) || s.DeleteVolume(id) || len(s.Volumes()) != 0 {
		t.Error("delete")
	}
}
