// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// TestVolumeEvents: attaching and detaching are events of the Droplet, of which
// it has one at a time.
func TestVolumeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: 40 * time.Second})
		handler := described(t, s)
		a := makeDroplet(t, s, "a", "fra1")
		b := makeDroplet(t, s, "b", "fra1")
		v := makeVolume(t, handler, newVolume("v"))
		<-time.After(time.Second) // the older is the first in lists
		w := makeVolume(t, handler, newVolume("w"))
		act := func(volume, what string, droplet int64, status int, want string) {
			t.Helper()
			got, body, _ := do(t, handler, "POST", "/v2/volumes/"+volume+"/actions", fmt.Sprintf(`{"type":%q,"droplet_id":%d}`, what, droplet))
			if got != status || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s", what, got, body)
			}
		}
		const pending = "Droplet already has a pending event."
		act(v, "attach", a, 422, pending)
		<-time.After(40 * time.Second)
		act(v, "attach", a, 202, `"status":"in-progress"`)
		act(w, "attach", a, 422, pending)
		act(v, "attach", b, 422, "This volume is already attached")
		act(v, "detach", a, 422, "Attachment not found")
		if got := s.Volumes()[0]; got.Droplet != 0 || !s.Droplets()[0].Locked {
			t.Errorf("attached at once: %+v", got)
		}
		if status, _, _ := do(t, handler, "DELETE", "/v2/volumes/"+v, ""); status != 409 {
			t.Errorf("deleting while it is attached: %d", status)
		}
		if status, _, _ := do(t, handler, "POST", "/v2/volumes/"+v+"/actions", `{"type":"resize","size_gigabytes":12}`); status != 202 {
			t.Errorf("resizing meanwhile: %d", status)
		}
		<-time.After(5 * time.Second)
		if got := s.Volumes()[0]; got.Droplet != a || got.Size != 12 {
			t.Errorf("after 5 s: %+v", got)
		}
		act(v, "detach", a, 202, `"type":"detach_volume"`)
		act(w, "attach", a, 422, pending)
		<-time.After(5 * time.Second)
		act(w, "attach", a, 202, "")
		if !s.Delete(a) {
			t.Fatal("no such Droplet")
		}
		<-time.After(5 * time.Second)
		if got := s.Volumes(); got[0].Droplet != 0 || got[1].Droplet != 0 {
			t.Errorf("attached to what is gone: %+v", got)
		}
	})
}

// TestSnapshotInterval: one snapshot of a volume in ten minutes, and 25 in all.
func TestSnapshotInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: 40 * time.Second})
		handler := described(t, s)
		v, w := makeVolume(t, handler, newVolume("v")), makeVolume(t, handler, newVolume("w"))
		snapshot := func(volume, name string, status int, want string) http.Header {
			t.Helper()
			got, body, header := do(t, handler, "POST", "/v2/volumes/"+volume+"/snapshots", fmt.Sprintf(`{"name":%q}`, name))
			if got != status || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s", name, got, body)
			}
			return header
		}
		const tooSoon = "failed to create snapshot: this operation is rate-limited - one request per 10m0s"
		snapshot(v, "one", 201, `"size_gigabytes":0,`)
		one := s.VolumeSnapshots()[0].ID
		snapshot(w, "one", 201, "")
		if header := snapshot(v, "two", 429, tooSoon); header.Get("Retry-After") != "" || header.Get("RateLimit-Remaining") == "0" {
			t.Errorf("headers %v", header)
		}
		<-time.After(10 * time.Second)
		if _, body, _ := do(t, handler, "GET", "/v2/snapshots/"+one, ""); strings.Contains(body, `"size_gigabytes":0,`) {
			t.Errorf("the size is never known: %s", body)
		}
		do(t, handler, "DELETE", "/v2/snapshots/"+one, "")
		snapshot(v, "one", 429, tooSoon)
		<-time.After(10*time.Minute - 10*time.Second)
		snapshot(v, "two", 201, "")

		addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes/*/snapshots", Kind: emulator.KindRateLimitSnapshot})
		<-time.After(10 * time.Minute)
		snapshot(v, "three", 429, tooSoon)
		snapshot(v, "three", 201, "")
		for i := range 23 {
			<-time.After(10 * time.Minute)
			snapshot(v, fmt.Sprintf("more-%d", i), 201, "")
		}
		<-time.After(10 * time.Minute)
		snapshot(v, "last", 422, "at most 25")
	})
}

// TestVolumeFaults sets each fault that concerns volumes in a way of its own.
func TestVolumeFaults(t *testing.T) {
	for _, test := range []struct {
		kind   emulator.Kind
		status int
		body   string
	}{
		{emulator.KindCapacity, 403, "capacity limit exceeded"},
		{emulator.KindPendingEvent, 422, "Droplet already has a pending event."},
		{emulator.KindStatus, 500, "server_error"},
		{emulator.KindHTML, 502, "<html>"},
		{emulator.KindRateLimitBurst, 429, "API rate limit exceeded."},
	} {
		s := digitalocean.New(digitalocean.Options{})
		handler := described(t, s)
		addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: test.kind})
		if status, body, _ := do(t, handler, "POST", "/v2/volumes", newVolume("v")); status != test.status || !strings.Contains(body, test.body) || len(s.Volumes()) != 0 {
			t.Errorf("%s: %d %s", test.kind, status, body)
		}
		if status, body, _ := do(t, handler, "POST", "/v2/volumes", newVolume("v")); status != 201 {
			t.Errorf("after %s: %d %s", test.kind, status, body)
		}
	}

	s := digitalocean.New(digitalocean.Options{})
	addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindLoseAnswer})
	if _, _, _, err := try(t.Context(), s, "POST", "/v2/volumes", newVolume("v")); err == nil || len(s.Volumes()) != 1 {
		t.Errorf("lost answer: %v, %d volumes", err, len(s.Volumes()))
	}
	one := "/v2/volumes/" + s.Volumes()[0].ID
	addFault(t, s, emulator.Rule{Method: "POST", Path: "*/snapshots", Kind: emulator.KindLoseAnswer})
	if _, _, _, err := try(t.Context(), s, "POST", one+"/snapshots", `{"name":"s"}`); err == nil || len(s.VolumeSnapshots()) != 1 {
		t.Errorf("lost answer: %v, %d snapshots", err, len(s.VolumeSnapshots()))
	}
	droplet := makeDroplet(t, s, "a", "fra1")
	for _, body := range []string{
		`{"type":"resize","size_gigabytes":20}`,
		fmt.Sprintf(`{"type":"attach","droplet_id":%d}`, droplet),
		fmt.Sprintf(`{"type":"detach","droplet_id":%d}`, droplet),
	} {
		if strings.Contains(body, "detach") {
			s.AttachVolume(s.Volumes()[0].ID, droplet)
		}
		before := fmt.Sprint(s.Volumes())
		addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes/*/actions", Kind: emulator.KindFailAction})
		if status, answer, _ := do(t, s, "POST", one+"/actions", body); status != 202 || !strings.Contains(answer, `"status":"errored"`) {
			t.Errorf("%s that fails: %d %s", body, status, answer)
		}
		if after := fmt.Sprint(s.Volumes()); after != before {
			t.Errorf("%s that failed: %s", body, after)
		}
	}
}

// TestLateVolumes: volumes and their snapshots are late in lists, or not to be
// found at all, for a while.
func TestLateVolumes(t *testing.T) {
	for kind, status := range map[emulator.Kind]int{emulator.KindHideFromLists: 200, emulator.KindEarly404: 404} {
		synctest.Test(t, func(t *testing.T) {
			s := digitalocean.New(digitalocean.Options{})
			handler := described(t, s)
			addFault(t, s, emulator.Rule{Method: "POST", Path: "/volumes*", Kind: kind, Times: 2, Delay: emulator.Duration(5 * time.Second)})
			v := makeVolume(t, handler, newVolume("v"))
			w := makeVolume(t, handler, newVolume("w"))
			late := func(want int, listed int) {
				t.Helper()
				if got, _, _ := do(t, handler, "GET", "/v2/volumes/"+v, ""); got != want {
					t.Errorf("%s: get says %d", kind, got)
				}
				if _, body, _ := do(t, handler, "GET", "/v2/volumes?name=w", ""); strings.Count(body, w) != listed {
					t.Errorf("%s: list %s", kind, body)
				}
			}
			late(status, 0)
			<-time.After(5 * time.Second)
			late(200, 1)
			addFault(t, s, emulator.Rule{Method: "POST", Path: "*/snapshots", Kind: kind, Delay: emulator.Duration(5 * time.Second)})
			snapshot := makeOne(t, handler, "/v2/volumes/"+v+"/snapshots", "snapshot", `{"name":"s"}`)
			if got, _, _ := do(t, handler, "GET", "/v2/snapshots/"+snapshot, ""); got != status {
				t.Errorf("%s: get of a snapshot says %d", kind, got)
			}
			for _, list := range []string{"/v2/snapshots?resource_type=volume", "/v2/volumes/" + v + "/snapshots"} {
				if _, body, _ := do(t, handler, "GET", list, ""); strings.Contains(body, snapshot) {
					t.Errorf("%s: %s", kind, body)
				}
			}
			<-time.After(5 * time.Second)
			if _, body, _ := do(t, handler, "GET", "/v2/snapshots", ""); !strings.Contains(body, snapshot) {
				t.Errorf("%s: never listed: %s", kind, body)
			}
		})
	}
}

// TestDestroyWithVolumes: those that are named go with the Droplet, others stay.
func TestDestroyWithVolumes(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	handler := described(t, s)
	v, w := makeVolume(t, handler, newVolume("v")), makeVolume(t, handler, newVolume("w"))
	status, body, _ := do(t, s, "POST", "/v2/droplets", fmt.Sprintf(`{"name":"a","region":"fra1","size":"s-1vcpu-1gb","image":"debian-12-x64","volumes":[%q,{"id":%q}]}`, v, w))
	if status != 202 || s.Volumes()[0].Droplet == 0 || s.Volumes()[1].Droplet == 0 {
		t.Fatalf("a Droplet with volumes: %d %s", status, body)
	}
	id := s.Droplets()[0].ID
	snapshot := makeOne(t, handler, "/v2/volumes/"+v+"/snapshots", "snapshot", `{"name":"s"}`)
	path := fmt.Sprintf("/v2/droplets/%d/destroy_with_associated_resources", id)
	if _, body, _ := do(t, handler, "GET", path, ""); !strings.Contains(body, v) || !strings.Contains(body, snapshot) || !strings.Contains(body, `"cost":"1.00"`) {
		t.Errorf("associated: %s", body)
	}
	if status, body, _ := do(t, handler, "DELETE", path+"/selective", fmt.Sprintf(`{"volumes":[%q]}`, v)); status != 202 {
		t.Fatalf("destroy: %d %s", status, body)
	}
	if got := s.Volumes(); len(s.Droplets()) != 0 || len(got) != 1 || got[0].ID != w || got[0].Droplet != 0 || len(s.VolumeSnapshots()) != 1 {
		t.Errorf("left: %+v", got)
	}
	if _, body, _ := do(t, handler, "GET", path+"/status", ""); !strings.Contains(body, `"failures":0`) {
		t.Errorf("status: %s", body)
	}
}

// TestVolumeLag: an action can be completed before its effect shows.
func TestVolumeLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{StatusLag: 3 * time.Second})
		handler := described(t, s)
		droplet := makeDroplet(t, s, "a", "fra1")
		<-time.After(3 * time.Second)
		id := makeVolume(t, handler, newVolume("v"))
		path, attach := "/v2/volumes/"+id+"/actions", fmt.Sprintf(`{"type":"attach","droplet_id":%d}`, droplet)
		if status, body, _ := do(t, handler, "POST", path, attach); status != 202 || !strings.Contains(body, `"status":"completed"`) {
			t.Errorf("attach: %d %s", status, body)
		}
		if got := s.Volumes()[0]; got.Droplet != 0 {
			t.Errorf("attached at once: %+v", got)
		}
		if status, body, _ := do(t, handler, "POST", path, attach); status != 422 || !strings.Contains(body, "already attached") {
			t.Errorf("attached again: %d %s", status, body)
		}
		<-time.After(3 * time.Second)
		if got := s.Volumes()[0]; got.Droplet != droplet {
			t.Errorf("never attached: %+v", got)
		}
	})
}
