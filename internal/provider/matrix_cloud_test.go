// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// matrixCloud is a cloud of the fault matrix.
type matrixCloud struct {
	name    string
	account given // the account's attributes, its name aside
	lag     time.Duration
	service func(t *testing.T, m *matrixCloud) (emulator.Service, func(http.RoundTripper) *backends.Definition)
	// prepare makes what configurations name, in an empty cloud, and returns its id.
	prepare func(s emulator.Service) (network string)
	// rows are the objects of a cloud: an id, and all that can be seen.
	rows func(s emulator.Service) []row
	// rest is what isn't an object: tags, disks, files.
	rest func(s emulator.Service) []string
	// operations are what is done in it, given the network's id.
	operations func(network string) []operation
	// folder is where snippets are; "" for none.
	folder string

	// types are the schema's, which don't change between processes.
	types map[string]tftypes.Object
}

// row is an object in a cloud.
type row struct {
	id   string // the cloud's
	text string
}

// matrixLatency is that of a call; boots take a hundredth of their time too.
const matrixLatency = time.Millisecond / 2

func matrixClouds(t *testing.T) []*matrixCloud {
	t.Helper()
	boot := backends.Scale(15 * time.Second)
	return []*matrixCloud{
		{
			name: "hetzner", lag: 10 * time.Second, account: given{"hetzner_cloud": given{"token": "env://" + tokenVariable}},
			service: func(_ *testing.T, _ *matrixCloud) (emulator.Service, func(http.RoundTripper) *backends.Definition) {
				s := hetzneremulator.New(hetzneremulator.Options{Boot: boot, Latency: matrixLatency})
				return s, func(rt http.RoundTripper) *backends.Definition { return hetzner.New(hetzner.Options{Transport: rt}) }
			},
			prepare: prepareHetzner, rest: hetznerLeftovers,
			rows: hetznerRows, operations: hetznerOperations,
		},
		{
			name: "digitalocean", lag: time.Minute, account: given{"digitalocean": given{"token": "env://" + tokenVariable, "region": "fra1"}},
			service: func(_ *testing.T, _ *matrixCloud) (emulator.Service, func(http.RoundTripper) *backends.Definition) {
				s := oceanemulator.New(oceanemulator.Options{Boot: boot, Latency: matrixLatency, SnapshotInterval: -1})
				return s, func(rt http.RoundTripper) *backends.Definition {
					return digitalocean.New(digitalocean.Options{Transport: rt})
				}
			},
			prepare: func(s emulator.Service) string { return s.(*oceanemulator.Service).AddVPC("files", oceanShareRegion) },
			rows:    oceanRows, operations: oceanOperations,
			// Tags of labels aren't ours to delete: they may have been there before.
			rest: func(s emulator.Service) []string {
				return slices.DeleteFunc(s.(*oceanemulator.Service).Tags(), func(tag string) bool { return !strings.HasPrefix(tag, "better-compute") })
			},
		},
		clusterInMatrix(t, boot),
	}
}

func clusterInMatrix(t *testing.T, boot time.Duration) *matrixCloud {
	t.Helper()
	folder := t.TempDir()
	return &matrixCloud{
		name: "proxmox", lag: 10 * time.Second, folder: folder, account: given{"proxmox": given{
			"token": "env://PROXMOX_TOKEN", "url": "https://pve.test:8006",
			"snippets": given{"storage": clusteremulator.SnippetsStorage, "directory": folder},
		}},
		service: func(t *testing.T, m *matrixCloud) (emulator.Service, func(http.RoundTripper) *backends.Definition) {
			t.Helper()
			s, err := clusteremulator.New(clusteremulator.Options{PlainHTTP: true, Boot: boot, Scale: 0.01, Latency: matrixLatency, Snippets: m.folder})
			if err != nil {
				t.Fatal(err)
			}
			return s, func(rt http.RoundTripper) *backends.Definition { return proxmox.New(proxmox.Options{Transport: rt}) }
		},
		rows: clusterRows, operations: clusterOperations,
		rest: func(s emulator.Service) []string { return s.(*clusteremulator.Service).Volumes() },
	}
}

// stage is a cloud in which a schedule is played.
type stage struct {
	*world
	*matrixCloud
	service emulator.Service
	// calls are how many were made, and onCall is told their number.
	calls  atomic.Int64
	onCall func(n int64)
}

func (m *matrixCloud) newStage(t *testing.T) *stage {
	t.Helper()
	service, definition := m.service(t, m)
	s := &stage{matrixCloud: m, service: service}
	transport := emulator.Transport(service)
	clouds, err := backends.NewRegistry(definition(roundTrip(func(r *http.Request) (*http.Response, error) {
		n := s.calls.Add(1)
		if s.onCall != nil {
			s.onCall(n)
		}
		return transport.RoundTrip(r)
	})))
	if err != nil {
		t.Fatal(err)
	}
	s.world = &world{t: t, clouds: clouds}
	return s
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// process is the provider in a process of its own.
func (s *stage) process() *wire {
	s.t.Helper()
	if s.types == nil {
		w := s.wire()
		s.types = w.types
		return w
	}
	w := &wire{t: s.t, server: s.server(), types: s.types}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"tenant_id": tftypes.String, "secrets": tftypes.Map{ElementType: tftypes.String},
		"vault": tftypes.Object{AttributeTypes: map[string]tftypes.Type{"address": tftypes.String, "namespace": tftypes.String, "token": tftypes.String}},
	}}
	config := w.dynamic(typ, tftypes.NewValue(typ, nulls(typ)))
	resp, err := w.server.ConfigureProvider(s.t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	if err != nil || errorsOf(resp.Diagnostics) != "" {
		s.t.Fatal(err, errorsOf(resp.Diagnostics))
	}
	return w
}

// moment is a cloud and a state between two runs.
type moment struct {
	cloud json.RawMessage
	files map[string]string
	time  time.Time
	state state
}

func (s *stage) moment(state state) moment {
	s.t.Helper()
	cloud, err := s.service.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	return moment{cloud, s.files(), time.Now(), maps.Clone(state)}
}

// at brings a new stage to a moment, the clock too.
func (m *matrixCloud) at(t *testing.T, then moment) *stage {
	t.Helper()
	s := m.newStage(t)
	if err := s.service.Restore(then.cloud); err != nil {
		t.Fatal(err)
	}
	// In fake time: all schedules begin at the same instant.
	if err := backends.Sleep(t.Context(), time.Until(then.time)); err != nil {
		t.Fatal(err)
	}
	if m.folder != "" {
		for name := range s.files() {
			if err := os.Remove(filepath.Join(m.folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range then.files {
			if err := os.WriteFile(filepath.Join(m.folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func (s *stage) files() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	if s.folder == "" {
		return out
	}
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(s.folder, e.Name()))
		if err != nil {
			s.t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	return out
}

// leftovers are everything that isn't there from the start.
func (s *stage) leftovers() (out []string) {
	for _, r := range s.rows(s.service) {
		out = append(out, r.id+" "+r.text)
	}
	if s.rest != nil {
		out = append(out, s.rest(s.service)...)
	}
	return append(out, slices.Sorted(maps.Keys(s.files()))...)
}

// seen is what a cloud holds, in words that are the same whatever the ids and claims
// are: the address of the block that each object belongs to, and all that can be seen
// of it. An object that no block has, or whose claim isn't its block's, shows.
func (s *stage) seen(state state) string {
	names := namesOf(state)
	var out []string
	for _, r := range s.rows(s.service) {
		line := names.Replace(r.id + " " + r.text)
		if !strings.HasPrefix(line, "<") {
			line = "UNRECORDED " + line
		}
		out = append(out, madeAt.ReplaceAllString(line, "<time>"))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// namesOf puts addresses for the ids and claims of a state.
func namesOf(state state) *strings.Replacer {
	var ids []string
	for address, r := range state {
		if r.block.typ == attachmentType {
			continue // what it names belongs to others
		}
		for _, name := range []string{"machine_id", "volume_id", "snapshot_id"} {
			if id := r.attribute(name); id != "" {
				ids = append(ids, id, "<"+address+">")
			}
		}
		if claim := r.attribute("claim"); claim != "" {
			ids = append(ids, claim, "<claim of "+address+">")
		}
	}
	return strings.NewReplacer(ids...)
}

// outcome is what a run left in the cloud and in the state, but for ids, addresses and
// times.
func (s *stage) outcome(state state) string {
	names := namesOf(state)
	out := unrecorded.ReplaceAllString(s.seen(state), "UNRECORDED")
	for _, address := range slices.Sorted(maps.Keys(state)) {
		r := state[address]
		out += fmt.Sprintf("\n%s %v", address, r.tainted)
		private := map[string][]byte{} // as the framework writes it
		if err := json.Unmarshal(r.private, &private); len(r.private) > 0 && err != nil {
			s.t.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(private)) {
			out += " " + key + names.Replace(string(private[key]))
		}
		var values map[string]tftypes.Value
		if err := r.value.As(&values); err != nil {
			s.t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !strings.Contains(name, "ip") && !strings.Contains(name, "address") && name != "created_at" {
				out += names.Replace(name + values[name].String())
			}
		}
	}
	return madeAt.ReplaceAllString(out, "<time>")
}

// unrecorded is the id of an object that isn't in a state, and its claim.
var unrecorded = regexp.MustCompile(`UNRECORDED [^ ]+|claim[:-][0-9a-z]{26}`)

// madeAt is what a VM's tags and its virtual hardware hold that differs each time.
var madeAt = regexp.MustCompile(`bc-created-[0-9]+`)

// attribute is a text of a state; "" where it is null or there is none.
func (o object) attribute(name string) (s string) {
	var values map[string]tftypes.Value
	if o.value.As(&values) == nil && values[name].IsKnown() && !values[name].IsNull() {
		_ = values[name].As(&s) // another type has no text
	}
	return s
}

func hetznerRows(service emulator.Service) (out []row) {
	s := service.(*hetzneremulator.Service)
	for _, v := range s.Servers() {
		out = append(out, row{strconv.FormatInt(v.ID, 10), fmt.Sprint("server ", v.Name, " ", v.Status, " ", v.ServerType, " ", v.Location,
			" image ", v.Image, " ", len(v.UserData), " ", v.Protected, v.Backups, " ", v.Labels, hetznerOptions(v))})
	}
	for _, v := range s.Volumes() {
		out = append(out, row{strconv.FormatInt(v.ID, 10), fmt.Sprint("volume ", v.Name, " ", v.Status, " ", v.Size, " ", v.Format, " on ", v.Server, " ", v.Protected, " ", v.Labels)})
	}
	return out
}

func oceanRows(service emulator.Service) (out []row) {
	s := service.(*oceanemulator.Service)
	for _, v := range s.Droplets() {
		slices.Sort(v.Tags)
		out = append(out, row{strconv.FormatInt(v.ID, 10), fmt.Sprint("droplet ", v.Name, " ", v.Status, " ", v.Size, " ", v.Region,
			" image ", v.Image, " ", len(v.UserData), v.Backups, v.Policy, " ", v.IPv6, " ", v.Disk, " ", v.Tags)})
	}
	for _, v := range s.Volumes() {
		slices.Sort(v.Tags)
		out = append(out, row{v.ID, fmt.Sprint("volume ", v.Name, " ", v.Size, " ", v.FilesystemType, " on ", v.Droplet, " ", v.Tags)})
	}
	for _, v := range s.VolumeSnapshots() {
		slices.Sort(v.Tags)
		out = append(out, row{v.ID, fmt.Sprint("snapshot ", v.Name, " of ", v.Volume, " ", v.MinDiskSize, " ", v.Tags)})
	}
	for _, v := range s.Shares() {
		out = append(out, row{v.ID, fmt.Sprint("share ", v.Name, " ", v.SizeGiB, " ", v.Status, " in ", v.VPCs)})
	}
	for _, v := range s.ShareSnapshots() {
		out = append(out, row{v.ID, fmt.Sprint("share snapshot ", v.Name, " of ", v.Share, " ", v.SizeGiB, " ", v.Status)})
	}
	return out
}

var anyMAC = regexp.MustCompile(`(?:[0-9A-F]{2}:){5}[0-9A-F]{2}`)

func clusterRows(service emulator.Service) (out []row) {
	s := service.(*clusteremulator.Service)
	for _, v := range s.Machines() {
		// Those of the template, which an interrupted reinstallation forgets.
		v.Tags = slices.DeleteFunc(v.Tags, func(tag string) bool { return tag == "debian" || tag == "template" })
		slices.Sort(v.Tags)
		text := fmt.Sprint("vm ", v.Name, " ", v.Running, " ", len(v.UserData), " ", v.Tags)
		for _, option := range []string{"cores", "memory", "protection", "ipconfig0", "lock", "onboot", "cicustom", "net0", "cpu", "nameserver", "searchdomain"} {
			text += " " + option + "=" + anyMAC.ReplaceAllString(v.Config[option], "<mac>")
		}
		out = append(out, row{strconv.Itoa(v.ID), text})
	}
	return out
}
