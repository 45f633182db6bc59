// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// things are those of a cloud, given the id of its network.
func things(cloud, network string) []thing {
	app := given{"labels": map[string]string{"app": "web"}}
	off := given{"power": "off"}
	data := aVolume("data", app)
	volume := thing{name: "volume", id: "volume_id", to: blocks{data}, change: given{"size_gib": 20}, otherwise: given{"filesystem": "ext4"}}
	instance := func(base given, image string) thing {
		return thing{name: "instance", id: "machine_id", to: blocks{anInstance("web", base, app)}, change: off, otherwise: given{"image": image}}
	}
	switch cloud {
	case "hetzner":
		return []thing{instance(given{"offer": "cx23", "image": "ubuntu-24.04", "deletion_protection": false}, "debian-12"), volume}
	case "digitalocean":
		share := aVolume("data", given{"kind": "shared", "size_gib": 50, "region": oceanShareRegion, "network_id": network})
		return []thing{
			instance(given{"offer": "s-1vcpu-1gb", "image": "debian-12-x64"}, "ubuntu-24-04-x64"), volume,
			{name: "snapshot", id: "snapshot_id", to: blocks{data, aSnapshot("first", nil)}},
			{name: "share", id: "volume_id", to: blocks{share}, change: given{"size_gib": 60}, fixed: true},
			{name: "share-snapshot", id: "snapshot_id", to: blocks{share, aSnapshot("first", nil)}, fixed: true},
		}
	default:
		return []thing{instance(given{"offer": "1c-2g-20d", "image": "debian-13", "deletion_protection": false}, "pve1/9001")}
	}
}

// hand does things to an object behind the provider's back, as someone with the cloud's
// console, or another tool, does.
type hand struct {
	*stage
	id string
}

func (h hand) number() int64 {
	n, err := strconv.ParseInt(h.id, 10, 64)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// api calls the cloud's API, and waits until what it began must be done.
func (h hand) api(method, path string, body any) {
	h.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, "https://cloud.test"+path, bytes.NewReader(text))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := emulator.Transport(h.service).RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		h.t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, said, err)
	}
	h.wait(time.Minute)
}

func (h hand) wait(d time.Duration) {
	h.t.Helper()
	if err := backends.Sleep(h.t.Context(), d); err != nil {
		h.t.Fatal(err)
	}
}

// labels are an object's labels or tags; of those with a value as "key=value".
func (h hand) labels(kind string) []string {
	switch s := h.service.(type) {
	case *hetzneremulator.Service:
		labels := map[string]string{}
		for _, v := range s.Servers() {
			if v.ID == h.number() && kind == "instance" {
				labels = v.Labels
			}
		}
		for _, v := range s.Volumes() {
			if v.ID == h.number() && kind == "volume" {
				labels = v.Labels
			}
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			out = append(out, key+"="+labels[key])
		}
		return out
	case *oceanemulator.Service:
		for _, v := range s.Droplets() {
			if kind == "instance" && v.ID == h.number() {
				return v.Tags
			}
		}
		for _, v := range s.Volumes() {
			if v.ID == h.id {
				return v.Tags
			}
		}
		for _, v := range s.VolumeSnapshots() {
			if v.ID == h.id {
				return v.Tags
			}
		}
	case *clusteremulator.Service:
		for _, v := range s.Machines() {
			if strconv.Itoa(v.ID) == h.id {
				return v.Tags
			}
		}
	}
	return nil
}

// label writes an object's labels or tags anew.
func (h hand) label(kind string, labels []string) {
	h.t.Helper()
	done := false
	switch s := h.service.(type) {
	case *hetzneremulator.Service:
		values := map[string]string{}
		for _, l := range labels {
			key, value, _ := strings.Cut(l, "=")
			values[key] = value
		}
		if kind == "instance" {
			done = s.SetLabels(h.number(), values)
		} else {
			done = s.SetVolumeLabels(h.number(), values)
		}
	case *oceanemulator.Service:
		switch kind {
		case "instance":
			done = s.SetTags(h.number(), labels)
		case "volume":
			done = s.SetVolumeTags(h.id, labels...)
		case "snapshot":
			done = s.SetVolumeSnapshotTags(h.id, labels...)
		}
	case *clusteremulator.Service:
		done = s.SetOption(int(h.number()), "tags", strings.Join(labels, ";"))
	}
	if !done {
		h.t.Fatalf("%s %s has no labels", kind, h.id)
	}
}

// isMark tells whether a label or tag is one of the provider's own.
func isMark(label string) bool {
	return strings.HasPrefix(label, "better-compute") || strings.HasPrefix(label, "bc-")
}

// without are labels without one.
func without(labels []string, gone string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == gone })
}

// hands are what can be done by hand to a kind of object in a cloud.
func hands(cloud, kind string) map[string]func(h hand) {
	switch cloud + " " + kind {
	case "hetzner instance":
		server := func(h hand) *hetzneremulator.Service { return h.service.(*hetzneremulator.Service) }
		return map[string]func(h hand){
			"renamed": func(h hand) { h.api(http.MethodPut, "/v1/servers/"+h.id, given{"name": "by-hand"}) },
			"resized": func(h hand) {
				server(h).SetPower(h.number(), false)
				h.api(http.MethodPost, "/v1/servers/"+h.id+"/actions/change_type", given{"server_type": "cx33", "upgrade_disk": false})
				server(h).SetPower(h.number(), true)
			},
			"protected": func(h hand) {
				h.api(http.MethodPost, "/v1/servers/"+h.id+"/actions/change_protection", given{"delete": true, "rebuild": true})
			},
			"off":     func(h hand) { server(h).SetPower(h.number(), false) },
			"deleted": func(h hand) { server(h).Delete(h.number()) },
		}
	case "hetzner volume":
		return map[string]func(h hand){
			"renamed": func(h hand) { h.api(http.MethodPut, "/v1/volumes/"+h.id, given{"name": "by-hand"}) },
			"resized": func(h hand) { h.api(http.MethodPost, "/v1/volumes/"+h.id+"/actions/resize", given{"size": 40}) },
			"protected": func(h hand) {
				h.api(http.MethodPost, "/v1/volumes/"+h.id+"/actions/change_protection", given{"delete": true})
			},
			"attached": func(h hand) {
				service := h.service.(*hetzneremulator.Service)
				h.api(http.MethodPost, "/v1/servers", given{"name": "by-hand", "server_type": "cx23", "image": "ubuntu-24.04", "location": "fsn1"})
				service.AttachVolume(h.number(), service.Servers()[len(service.Servers())-1].ID)
			},
			"deleted": func(h hand) { h.service.(*hetzneremulator.Service).DeleteVolume(h.number()) },
		}
	case "digitalocean instance":
		droplet := func(h hand) *oceanemulator.Service { return h.service.(*oceanemulator.Service) }
		return map[string]func(h hand){
			"renamed": func(h hand) { droplet(h).SetName(h.number(), "by-hand") },
			"resized": func(h hand) {
				droplet(h).SetPower(h.number(), false)
				h.api(http.MethodPost, "/v2/droplets/"+h.id+"/actions", given{"type": "resize", "size": "s-1vcpu-2gb", "disk": false})
				droplet(h).SetPower(h.number(), true)
			},
			"off":     func(h hand) { droplet(h).SetPower(h.number(), false) },
			"deleted": func(h hand) { droplet(h).Delete(h.number()) },
		}
	case "digitalocean volume":
		return map[string]func(h hand){
			"resized": func(h hand) {
				h.api(http.MethodPost, "/v2/volumes/"+h.id+"/actions", given{"type": "resize", "size_gigabytes": 40})
			},
			"attached": func(h hand) {
				service := h.service.(*oceanemulator.Service)
				h.api(http.MethodPost, "/v2/droplets", given{"name": "by-hand", "size": "s-1vcpu-1gb", "image": "debian-12-x64", "region": "fra1"})
				service.AttachVolume(h.id, service.Droplets()[len(service.Droplets())-1].ID)
			},
			"deleted": func(h hand) { h.service.(*oceanemulator.Service).DeleteVolume(h.id) },
		}
	case "digitalocean snapshot":
		return map[string]func(h hand){
			"deleted": func(h hand) { h.service.(*oceanemulator.Service).DeleteVolumeSnapshot(h.id) },
		}
	case "digitalocean share":
		return map[string]func(h hand){
			"resized": func(h hand) { h.service.(*oceanemulator.Service).SetShareSize(h.id, 80) },
			"failed":  func(h hand) { h.service.(*oceanemulator.Service).SetShareStatus(h.id, "FAILED") },
			"deleted": func(h hand) { h.service.(*oceanemulator.Service).DeleteShare(h.id) },
		}
	case "digitalocean share-snapshot":
		return map[string]func(h hand){
			"deleted": func(h hand) { h.service.(*oceanemulator.Service).DeleteShareSnapshot(h.id) },
		}
	case "proxmox instance":
		pve := func(h hand) *clusteremulator.Service { return h.service.(*clusteremulator.Service) }
		set := func(name, value string) func(h hand) {
			return func(h hand) { pve(h).SetOption(int(h.number()), name, value) }
		}
		return map[string]func(h hand){
			"renamed":   set("name", "by-hand"),
			"resized":   set("cores", "4"),
			"protected": set("protection", "1"),
			"moved":     func(h hand) { pve(h).Move(int(h.number()), "pve2") },
			"off":       func(h hand) { pve(h).SetPower(int(h.number()), false) },
			"deleted":   func(h hand) { pve(h).Delete(int(h.number())) },
			// The note in the description holds the marks a second time.
			"undescribed": set("description", "hello"),
			"templated":   set("template", "1"),
		}
	}
	return nil
}
