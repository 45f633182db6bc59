// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// TestEditsTakeTime: what changes a Droplet is an event of it, and nothing shows
// before the event has ended.
func TestEditsTakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{Boot: 40 * time.Second})
		client := godo.NewClient(&http.Client{Transport: authorized{emulator.Transport(described(t, s))}})
		made := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
		<-time.After(40 * time.Second)
		do := client.DropletActions
		look := func() string {
			d := s.Droplets()[0]
			return fmt.Sprintf("%s %s %d %q ipv6 %v", d.Name, d.Size, d.Disk, d.Policy, d.IPv6)
		}
		for _, edit := range []struct {
			act   func() (*godo.Action, *godo.Response, error)
			takes time.Duration
			want  string
		}{
			{func() (*godo.Action, *godo.Response, error) { return do.Rename(t.Context(), made.ID, "b") }, 5 * time.Second, `b s-1vcpu-1gb 25 "" ipv6 false`},
			{func() (*godo.Action, *godo.Response, error) { return do.EnableIPv6(t.Context(), made.ID) }, 5 * time.Second, `b s-1vcpu-1gb 25 "" ipv6 true`},
			{func() (*godo.Action, *godo.Response, error) { return do.EnableBackups(t.Context(), made.ID) }, 5 * time.Second, `b s-1vcpu-1gb 25 "daily 0" ipv6 true`},
			{func() (*godo.Action, *godo.Response, error) {
				return do.ChangeBackupPolicy(t.Context(), made.ID, &godo.DropletBackupPolicyRequest{Plan: "weekly", Weekday: "TUE", Hour: new(8)})
			}, 5 * time.Second, `b s-1vcpu-1gb 25 "weekly TUE 8" ipv6 true`},
			{func() (*godo.Action, *godo.Response, error) { return do.DisableBackups(t.Context(), made.ID) }, 5 * time.Second, `b s-1vcpu-1gb 25 "" ipv6 true`},
			{func() (*godo.Action, *godo.Response, error) { return do.PowerOff(t.Context(), made.ID) }, 10 * time.Second, `b s-1vcpu-1gb 25 "" ipv6 true`},
			{func() (*godo.Action, *godo.Response, error) {
				return do.Resize(t.Context(), made.ID, "s-2vcpu-4gb", true)
			}, 40 * time.Second, `b s-2vcpu-4gb 80 "" ipv6 true`},
		} {
			before := look()
			action := must[*godo.Action](t)(edit.act())
			_, _, err := do.Rename(t.Context(), made.ID, "c")
			refusal(t, err, 422, "pending event")
			<-time.After(edit.takes - time.Second)
			if got := look(); got != before || !s.Droplets()[0].Locked {
				t.Errorf("%s shows too early: %s", action.Type, got)
			}
			<-time.After(time.Second)
			if got := look(); got != edit.want || s.Droplets()[0].Locked {
				t.Errorf("%s: %s, want %s", action.Type, got, edit.want)
			}
		}
	})
}

// TestFailedEdits: an action that fails changes nothing, and leaves a Droplet off that
// was.
func TestFailedEdits(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	client := serve(t, s)
	d := must[*godo.Droplet](t)(client.Droplets.Create(t.Context(), small("a")))
	must[*godo.Action](t)(client.DropletActions.PowerOff(t.Context(), d.ID))
	for name, act := range map[string]func() (*godo.Action, *godo.Response, error){
		"resize": func() (*godo.Action, *godo.Response, error) {
			return client.DropletActions.Resize(t.Context(), d.ID, "s-2vcpu-4gb", true)
		},
		"rename": func() (*godo.Action, *godo.Response, error) {
			return client.DropletActions.Rename(t.Context(), d.ID, "b")
		},
		"enable_ipv6": func() (*godo.Action, *godo.Response, error) {
			return client.DropletActions.EnableIPv6(t.Context(), d.ID)
		},
		"enable_backups": func() (*godo.Action, *godo.Response, error) {
			return client.DropletActions.EnableBackups(t.Context(), d.ID)
		},
	} {
		addFault(t, s, emulator.Rule{Method: "POST", Path: "*", Kind: emulator.KindFailAction})
		if a := must[*godo.Action](t)(act()); a.Type != name || a.Status != "errored" {
			t.Errorf("%s: %+v", name, a)
		}
		if got := s.Droplets()[0]; got.Name != "a" || got.Size != "s-1vcpu-1gb" || got.Disk != 25 || got.Backups || got.IPv6 || got.Status != "off" || got.Locked {
			t.Errorf("%s that failed: %+v", name, got)
		}
	}
	addFault(t, s, emulator.Rule{Method: "POST", Path: "*/actions", Kind: emulator.KindCapacity})
	_, _, err := client.DropletActions.Resize(t.Context(), d.ID, "s-2vcpu-4gb", false)
	refusal(t, err, 422, "currently unavailable in this region")
	if !s.Resize(int64(d.ID), "s-2vcpu-4gb") || s.Droplets()[0].Disk != 80 || s.Resize(1, "s-2vcpu-4gb") {
		t.Errorf("resized behind the API's back: %+v", s.Droplets()[0])
	}
}
