// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// The tests of volume_spec_*_test.go are named after the sentences of the
// specification's page providerVolumes, and hold each on every cloud that it applies
// to. They speak the protocol, since that costs a hundredth of what a CLI does.

// specCloud is what the sentences need to know of a cloud with volumes.
type specCloud struct {
	name, poolURI     string
	offer, image      string
	region, elsewhere string // the account's, and another one
	smallest, largest int    // sizes that the cloud makes
}

func specClouds() []specCloud {
	return []specCloud{
		{"hetzner", poolURI, "cx23", "ubuntu-24.04", "fsn1", "nbg1", 10, 10240},
		{"digitalocean", oceanPoolURI, "s-1vcpu-1gb", "ubuntu-24-04-x64", "fra1", "nyc3", 1, 16384},
	}
}

// spec is both clouds, one of which a sentence is held on.
type spec struct {
	*ocean
	specCloud
	wire *wire
	// reformatted lets both clouds show xfs where they made ext4.
	reformatted atomic.Bool
}

// given are attributes: text, numbers, truths and lists of texts (sets).
type given map[string]any

// onBothClouds runs a test once per cloud, in fake time. boot is how long an instance
// takes until it runs; other actions take a part of it.
func onBothClouds(t *testing.T, boot time.Duration, do func(t *testing.T, s *spec)) {
	t.Helper()
	for _, c := range specClouds() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { do(t, newSpec(t, c, boot)) })
		})
	}
}

func newSpec(t *testing.T, c specCloud, boot time.Duration) *spec {
	t.Helper()
	s := &spec{specCloud: c, ocean: &ocean{
		world: &world{t: t, hetzner: hetzneremulator.New(hetzneremulator.Options{Boot: boot})},
		cloud: oceanemulator.New(oceanemulator.Options{Boot: boot, SnapshotInterval: -1}),
	}}
	clouds, err := backends.NewRegistry(
		hetzner.New(hetzner.Options{Transport: guest{s, emulator.Transport(s.hetzner)}}),
		digitalocean.New(digitalocean.Options{Transport: guest{s, emulator.Transport(s.cloud)}}),
		otherCloud(),
	)
	if err != nil {
		t.Fatal(err)
	}
	s.clouds = clouds
	s.wire = s.world.wire()
	return s
}

// guest is a cloud whose volumes a guest may have formatted anew.
type guest struct {
	*spec
	cloud http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g guest) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.cloud.RoundTrip(r)
	if err != nil || !g.reformatted.Load() {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	body = bytes.ReplaceAll(body, []byte(`"ext4"`), []byte(`"xfs"`))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// onShares is DigitalOcean, and the id of a VPC where it has shares.
func onShares(t *testing.T, do func(t *testing.T, s *spec, vpc string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 0)
		s.region = oceanShareRegion
		do(t, s, s.cloud.AddVPC("files", oceanShareRegion))
	})
}

// share is the attributes of a shared volume in a VPC, and more.
func (s *spec) share(vpc string, more given) given {
	out := given{"kind": "shared", "size_gib": 50, "region": oceanShareRegion, "network_id": vpc}
	maps.Copy(out, more)
	return out
}

// config is a resource's configuration; a nil takes an attribute out.
func (s *spec) config(resource string, more given) tftypes.Value {
	all := given{"name": "data", "pool": s.poolURI, "size_gib": 10}
	switch resource {
	case instanceType:
		all = given{"name": "web-0", "pool": s.poolURI, "offer": s.offer, "image": s.image}
	case attachmentType:
		all = given{"volume": s.volumeURI("data")}
	case snapshotType:
		all = given{"name": "first", "volume": strings.Replace(s.poolURI, "/web?", "/web/volumes/data?", 1)}
	}
	maps.Copy(all, more)
	values := map[string]tftypes.Value{}
	for name, v := range all {
		switch v := v.(type) {
		case nil:
		case string:
			values[name] = tftypes.NewValue(tftypes.String, v)
		case int:
			values[name] = tftypes.NewValue(tftypes.Number, v)
		case bool:
			values[name] = tftypes.NewValue(tftypes.Bool, v)
		case []string:
			values[name] = onInstances(v...)["instances"]
		case map[string]string:
			values[name] = labelsValue(v)
		case tftypes.Value:
			values[name] = v
		default:
			s.t.Fatalf("%s: a value of the type %T", name, v)
		}
	}
	return s.wire.config(resource, values)
}

// problems are what validating and planning a change say; "" when both take it.
func (s *spec) problems(resource string, prior object, more given) string {
	s.t.Helper()
	config := s.config(resource, more)
	resp, err := s.wire.server.ValidateResourceConfig(s.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resource, Config: s.wire.dynamic(s.wire.types[resource], config), ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if problems := errorsOf(resp.Diagnostics); problems != "" {
		return problems
	}
	_, diags := s.wire.plan(resource, prior, config)
	return errorsOf(diags)
}

// refused fails unless planning a new volume is refused with all of the parts, and
// nothing was asked of the clouds that changes anything.
func (s *spec) refused(what string, more given, parts ...string) {
	s.t.Helper()
	s.refusedOf(what, s.wire.none(volumeType), more, parts...)
}

func (s *spec) refusedOf(what string, prior object, more given, parts ...string) {
	s.t.Helper()
	s.calledFor()
	got := s.problems(volumeType, prior, more)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			s.t.Errorf("%s: no %q in %q", what, part, got)
		}
	}
	if calls := s.calledFor(); len(calls) > 0 {
		s.t.Errorf("%s: refusing made the calls %v", what, calls)
	}
}

// accepted fails unless a new volume is planned.
func (s *spec) accepted(what string, more given) {
	s.t.Helper()
	if problems := s.problems(volumeType, s.wire.none(volumeType), more); problems != "" {
		s.t.Errorf("%s: %s", what, problems)
	}
}

// make applies a new resource.
func (s *spec) make(resource string, more given) object {
	s.t.Helper()
	return s.change(resource, s.wire.none(resource), more)
}

// change applies a resource in place, which must be well.
func (s *spec) change(resource string, prior object, more given) object {
	s.t.Helper()
	made, diags := s.wire.apply(s.t.Context(), resource, prior, s.config(resource, more))
	return done(s.t, made, diags)
}

// tried applies a new volume that the apply refuses, and is what it says.
func (s *spec) tried(more given) (object, string) {
	s.t.Helper()
	made, diags := s.wire.apply(s.t.Context(), volumeType, s.wire.none(volumeType), s.config(volumeType, more))
	return made, errorsOf(diags)
}

// refreshed reads a volume as the next run does.
func (s *spec) refreshed(prior object) object {
	s.t.Helper()
	s.wire = s.world.wire()
	out, diags := s.wire.read(volumeType, prior)
	return done(s.t, out, diags)
}

// gone destroys a resource, which must be well.
func (s *spec) gone(resource string, prior object) {
	s.t.Helper()
	after, diags := s.wire.destroy(resource, prior)
	if problems := errorsOf(diags); problems != "" || !after.value.IsNull() {
		s.t.Fatalf("destroying: %s; left is %s", problems, after.value)
	}
}

// specVolume is a block volume in either cloud.
type specVolume struct {
	id, name, region, filesystem string
	machine                      string // "" for none
	size                         int
}

// seen are the block volumes in the cloud.
func (s *spec) seen() (out []specVolume) {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for _, v := range s.hetzner.Volumes() {
		out = append(out, specVolume{strconv.FormatInt(v.ID, 10), v.Name, v.Location, v.Format, number(v.Server), v.Size})
	}
	for _, v := range s.cloud.Volumes() {
		out = append(out, specVolume{v.ID, v.Name, v.Region, v.FilesystemType, number(v.Droplet), v.Size})
	}
	return out
}

// one is the one block volume in the cloud.
func (s *spec) one() specVolume {
	s.t.Helper()
	all := s.seen()
	if len(all) != 1 {
		s.t.Fatalf("the cloud has %d volumes: %+v", len(all), all)
	}
	return all[0]
}

// attach attaches a volume behind the provider's back; no machine detaches it.
func (s *spec) attach(volume, machine string) {
	s.t.Helper()
	machineID, _ := strconv.ParseInt(machine, 10, 64)
	id, _ := strconv.ParseInt(volume, 10, 64)
	if !s.hetzner.AttachVolume(id, machineID) && !s.cloud.AttachVolume(volume, machineID) {
		s.t.Fatalf("no volume %s", volume)
	}
}

var specIDs = regexp.MustCompile(`/(\d+|[0-9a-f]{8}-[0-9a-f-]+)(/|$)`)

// calledFor are the calls since the last time that change something, ids left out;
// marks are left out too.
func (s *spec) calledFor() (out []string) {
	for _, c := range append(s.hetzner.Calls(), s.cloud.Calls()...) {
		call := c.Method + " " + specIDs.ReplaceAllString(c.Path, "/ID$2")
		if c.Method != http.MethodGet && c.Method != http.MethodPut && !strings.Contains(call, "/tags") {
			out = append(out, call)
		}
	}
	s.hetzner.ClearCalls()
	s.cloud.ClearCalls()
	return out
}

// broken sets a fault of the spec's cloud.
func (s *spec) broken(rule emulator.Rule) {
	s.t.Helper()
	add := s.hetzner.AddFault
	if s.name == "digitalocean" {
		add = s.cloud.AddFault
	}
	if err := add(rule); err != nil {
		s.t.Fatal(err)
	}
}

// interrupted applies a change that the user ends after a while.
func (s *spec) interrupted(prior object, after time.Duration, more given) object {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	time.AfterFunc(after, cancel)
	out, _ := s.wire.apply(ctx, volumeType, prior, s.config(volumeType, more))
	return out
}

// pass lets the bubble's clock go on.
func pass(d time.Duration) { time.Sleep(d) }
