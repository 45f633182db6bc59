// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// TestRestore: what a run leaves unfinished, the next one finishes.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := digitalocean.Options{Boot: time.Minute}
		first := digitalocean.New(options)
		do(t, first, "POST", "/v2/droplets", strings.Replace(newDroplet, `"web"`, `"better-compute","Web"`, 1))
		snapshot, err := first.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(snapshot), "token") {
			t.Error("the token is in the snapshot")
		}
		second := digitalocean.New(options)
		if err := second.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if got, want := second.Droplets(), first.Droplets(); !reflect.DeepEqual(got, want) || len(got) != 1 || !got[0].Locked || got[0].Status != "new" {
			t.Errorf("restored %+v, want %+v", got, want)
		}
		<-time.After(time.Minute)
		if got := second.Droplets(); got[0].Locked || got[0].Status != "active" {
			t.Errorf("after the boot: %+v", got)
		}
		if status, body, _ := do(t, second, "GET", "/v2/actions", ""); status != 200 || !strings.Contains(body, `"status":"completed"`) {
			t.Errorf("actions %d %s", status, body)
		}
		do(t, second, "POST", "/v2/droplets", newDroplet)
		if got := second.Droplets(); len(got) != 2 || got[1].ID <= got[0].ID || got[1].Tags[0] != "Web" {
			t.Errorf("after another creation: %+v", got)
		}
		objects, err := json.Marshal(second.Objects().Machines)
		if err != nil || string(objects) != `[{"id":"400000001","name":"a","state":"active","managed":true},{"id":"400000002","name":"a","state":"new","managed":false}]` {
			t.Errorf("objects %s %v", objects, err)
		}
		for _, bad := range []string{`[]`, `{"projects":{"x":null}}`} {
			if err := second.Restore(json.RawMessage(bad)); err == nil {
				t.Errorf("%s was restored", bad)
			}
		}
	})
}

// TestOutOfBand: what happens to a Droplet behind the API's back.
func TestOutOfBand(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	do(t, s, "POST", "/v2/droplets", newDroplet)
	id := s.Droplets()[0].ID
	for name, change := range map[string]bool{
		"power": s.SetPower(id, false), "tags": s.SetTags(id, []string{"x", "WEB"}), "name": s.SetName(id, "b"),
		"region": s.SetRegion("nyc1", false), "size": s.SetSize("s-1vcpu-1gb", "ams3"), "image": s.RetireImage("debian-12-x64"),
	} {
		if !change {
			t.Errorf("%s: there is nothing to change", name)
		}
	}
	_, body, _ := do(t, s, "GET", "/v2/droplets", "")
	for _, want := range []string{`"status":"off"`, `"tags":["x","web"]`, `"name":"b"`, `"slug":null`, `"regions":["ams3"]`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if status, body, _ := do(t, s, "POST", "/v2/droplets", strings.Replace(newDroplet, "fra1", "nyc1", 1)); status != 422 || !strings.Contains(body, "Region is not available") {
		t.Errorf("in a closed region: %d %s", status, body)
	}
	if status, body, _ := do(t, s, "POST", "/v2/droplets", newDroplet); status != 422 || !strings.Contains(body, "Size is not available in this region.") {
		t.Errorf("with a size that went: %d %s", status, body)
	}
	vpc := s.AddVPC("by-hand", "ams3")
	if status, body, _ := do(t, s, "POST", "/v2/droplets", `{"name":"c","region":"ams3","size":"s-1vcpu-1gb","image":"debian-13-x64","vpc_uuid":"`+vpc+`"}`); status != 202 || !strings.Contains(body, vpc) {
		t.Errorf("in a VPC made by hand: %d %s", status, body)
	}
	if !s.Delete(id) || s.Delete(id) || s.SetPower(id, true) {
		t.Error("deleted other than once")
	}
	if status, _, _ := do(t, s, "DELETE", "/v2/droplets/400000001", ""); status != 404 {
		t.Errorf("deleted: %d", status)
	}
	if got := s.Tags(); !reflect.DeepEqual(got, []string{"web", "x"}) {
		t.Errorf("tags %v", got)
	}
}
