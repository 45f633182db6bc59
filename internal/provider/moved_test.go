// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	vendor "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// vendorProvider stands in for a vendor's provider in a CLI: each of its resource types
// has the attributes of one state, and a create records that state. The object was made
// by the vendor's client before.
type vendorProvider struct {
	name   string
	states map[string]string // by resource type, as JSON
}

func (p vendorProvider) server() (tfprotov6.ProviderServer, error) {
	return providerserver.NewProtocol6(p)(), nil
}

// Metadata implements [provider.Provider].
func (p vendorProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = p.name
}

// Schema implements [provider.Provider].
func (p vendorProvider) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

// Configure implements [provider.Provider].
func (p vendorProvider) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

// DataSources implements [provider.Provider].
func (p vendorProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

// Resources implements [provider.Provider].
func (p vendorProvider) Resources(context.Context) []func() vendor.Resource {
	var out []func() vendor.Resource
	for name, state := range p.states {
		out = append(out, func() vendor.Resource { return vendorResource{name, state} })
	}
	return out
}

type vendorResource struct{ name, state string }

// Metadata implements [vendor.Resource].
func (r vendorResource) Metadata(_ context.Context, _ vendor.MetadataRequest, resp *vendor.MetadataResponse) {
	resp.TypeName = r.name
}

// Schema implements [vendor.Resource].
func (r vendorResource) Schema(_ context.Context, _ vendor.SchemaRequest, resp *vendor.SchemaResponse) {
	var values map[string]any
	if err := json.Unmarshal([]byte(r.state), &values); err != nil {
		resp.Diagnostics.AddError("not JSON", err.Error())
	}
	resp.Schema.Attributes = map[string]schema.Attribute{}
	for name, v := range values {
		switch v.(type) {
		case bool:
			resp.Schema.Attributes[name] = schema.BoolAttribute{Computed: true}
		case float64:
			resp.Schema.Attributes[name] = schema.NumberAttribute{Computed: true}
		case []any:
			resp.Schema.Attributes[name] = schema.ListAttribute{Computed: true, ElementType: types.StringType}
		case map[string]any:
			resp.Schema.Attributes[name] = schema.MapAttribute{Computed: true, ElementType: types.StringType}
		default:
			resp.Schema.Attributes[name] = schema.StringAttribute{Computed: true}
		}
	}
}

// Create implements [vendor.Resource].
func (r vendorResource) Create(_ context.Context, _ vendor.CreateRequest, resp *vendor.CreateResponse) {
	made, err := (&tfprotov6.RawState{JSON: []byte(r.state)}).Unmarshal(resp.State.Raw.Type())
	if err != nil {
		resp.Diagnostics.AddError("no state", err.Error())
		return
	}
	resp.State.Raw = made
}

// ImportState implements [vendor.ResourceWithImportState].
func (r vendorResource) ImportState(_ context.Context, _ vendor.ImportStateRequest, resp *vendor.ImportStateResponse) {
	imported, err := (&tfprotov6.RawState{JSON: []byte(r.state)}).Unmarshal(resp.State.Raw.Type())
	if err != nil {
		resp.Diagnostics.AddError("no state", err.Error())
		return
	}
	resp.State.Raw = imported
}

// Read implements [vendor.Resource].
func (r vendorResource) Read(context.Context, vendor.ReadRequest, *vendor.ReadResponse) {}

// Update implements [vendor.Resource].
func (r vendorResource) Update(context.Context, vendor.UpdateRequest, *vendor.UpdateResponse) {}

// Delete implements [vendor.Resource]: nothing that is moved is ever deleted.
func (r vendorResource) Delete(_ context.Context, _ vendor.DeleteRequest, resp *vendor.DeleteResponse) {
	resp.Diagnostics.AddError("deleted", r.name+" was deleted by its own provider")
}

// onlyUpdates is a check of a plan that updates these and does nothing else: "0 to add,
// N to change, 0 to destroy".
type onlyUpdates []string

// CheckPlan implements [plancheck.PlanCheck].
func (o onlyUpdates) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	var wrong []error
	seen := map[string]bool{}
	for _, change := range req.Plan.ResourceChanges {
		actions := change.Change.Actions
		if actions.NoOp() {
			continue
		}
		seen[change.Address] = true
		if !actions.Update() || !slices.Contains(o, change.Address) {
			wrong = append(wrong, fmt.Errorf("%s: %v", change.Address, actions))
		}
	}
	if len(seen) != len(o) {
		wrong = append(wrong, fmt.Errorf("of %v it changes %v", []string(o), slices.Collect(maps.Keys(seen))))
	}
	resp.Error = errors.Join(wrong...)
}

// instanceLikeServer is the instance that [world.vendorsServer] makes of web-0.
const instanceLikeServer = `
resource "bettercompute_instance" "web" {
  name  = "web-0"
  pool  = bettercompute_pool.web.uri
  offer = "cx23"
  image = "ubuntu-24.04"
}
`

// A configuration of the vendor's provider is rewritten to ours with moved blocks.
func TestMovedFromHcloud(t *testing.T) {
	w := newWorld(t)
	server, serverState := w.vendorsServer("web-0")
	volume, volumeState := w.vendorsVolume("data", server)
	factories := w.factories()
	factories["hcloud"] = vendorProvider{"hcloud", map[string]string{"hcloud_server": serverState, "hcloud_volume": volumeState}}.server
	ours := instanceLikeServer + `
resource "bettercompute_provider_volume" "data" {
  name       = "data"
  pool       = bettercompute_pool.web.uri
  size_gib   = 20
  filesystem = "ext4"
  instances  = [bettercompute_instance.web.uri]
}
resource "terraform_data" "record" {
  triggers_replace = [bettercompute_instance.web.ipv4, bettercompute_instance.web.machine_id]
}
`
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             w.noVolumes,
		Steps: []resource.TestStep{
			{Config: w.pool() + `
resource "hcloud_server" "web" {}
resource "hcloud_volume" "data" {}
resource "terraform_data" "record" {
  triggers_replace = [hcloud_server.web.ipv4_address, hcloud_server.web.id]
}
`},
			check(w.forgetCalls),
			{
				Config: w.pool() + ours + `
moved {
  from = hcloud_server.web
  to   = bettercompute_instance.web
}
moved {
  from = hcloud_volume.data
  to   = bettercompute_provider_volume.data
}
`,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{onlyUpdates{"bettercompute_instance.web", "bettercompute_provider_volume.data"}},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("bettercompute_instance.web", tfjsonpath.New("machine_id"), knownvalue.StringExact(fmt.Sprint(server.ID))),
					statecheck.ExpectKnownValue("bettercompute_provider_volume.data", tfjsonpath.New("volume_id"), knownvalue.StringExact(fmt.Sprint(volume.ID))),
				},
			},
			check(func() {
				for _, call := range w.calls() {
					if !strings.HasPrefix(call, "GET ") && !strings.HasPrefix(call, "PUT ") {
						t.Errorf("the call %s", call)
					}
				}
				if s, v := w.only(), w.onlyVolume(); s.ID != server.ID || v.ID != volume.ID || v.Server != server.ID {
					t.Errorf("the cloud has %+v and %+v", s, v)
				}
			}),
			// Without the moved blocks, which have done their work.
			{Config: w.pool() + ours, PlanOnly: true},
		},
	})
}

// The way out: the record is forgotten, and the vendor's provider imports the object.
func TestMovingOut(t *testing.T) {
	w := newWorld(t)
	server, state := w.vendorsServer("web-0")
	factories := w.factories()
	factories["hcloud"] = vendorProvider{"hcloud", map[string]string{"hcloud_server": state}}.server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: `resource "hcloud_server" "web" {}`},
			{Config: w.pool() + instanceLikeServer + `
moved {
  from = hcloud_server.web
  to   = bettercompute_instance.web
}
`},
			check(w.forgetCalls),
			{
				Config: w.pool() + fmt.Sprintf(`
removed {
  from = bettercompute_instance.web
  lifecycle {
    destroy = false
  }
}
import {
  to = hcloud_server.web
  id = "%d"
}
resource "hcloud_server" "web" {}
`, server.ID),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("hcloud_server.web", tfjsonpath.New("id"), knownvalue.StringExact(fmt.Sprint(server.ID))),
				},
			},
			check(func() {
				for _, call := range w.calls() {
					if !strings.HasPrefix(call, "GET ") {
						t.Errorf("the call %s", call)
					}
				}
				if s := w.only(); s.ID != server.ID {
					t.Errorf("the cloud has %+v", s)
				}
			}),
			// Its own provider takes our labels away; then the account and the pool can go.
			check(func() { w.hetzner.SetLabels(server.ID, map[string]string{"role": "web"}) }),
			{
				Config: `removed {
  from = hcloud_server.web
  lifecycle {
    destroy = false
  }
}`,
			},
			check(func() {
				if s := w.only(); s.ID != server.ID {
					t.Errorf("the cloud has %+v", s)
				}
			}),
		},
	})
}

func TestMovedFromDigitalOcean(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	droplet, state := o.vendorsDroplet("web-0")
	factories := o.factories()
	factories["digitalocean"] = vendorProvider{"digitalocean", map[string]string{"digitalocean_droplet": state}}.server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: oceanPool() + `
resource "digitalocean_droplet" "web" {
  count = 1
}
`},
			check(func() { o.changes() }),
			{
				Config: oceanPool() + `
resource "bettercompute_instance" "web" {
  count = 1
  name  = "web-${count.index}"
  pool  = bettercompute_pool.web.uri
  offer = "s-1vcpu-1gb"
  image = "ubuntu-24-04-x64"
}
moved {
  from = digitalocean_droplet.web
  to   = bettercompute_instance.web
}
`,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{onlyUpdates{`bettercompute_instance.web[0]`}}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(`bettercompute_instance.web[0]`, tfjsonpath.New("machine_id"), knownvalue.StringExact(fmt.Sprint(droplet.ID))),
				},
			},
			check(func() {
				for _, call := range o.changes() {
					if !strings.HasPrefix(call, "POST /v2/tags") {
						t.Errorf("the call %s", call)
					}
				}
			}),
		},
	})
}

// The account and the pool may be new in the same plan: their uris are known.
func TestMovedIntoANewPool(t *testing.T) {
	w := newWorld(t)
	_, state := w.vendorsServer("web-0")
	factories := w.factories()
	factories["hcloud"] = vendorProvider{"hcloud", map[string]string{"hcloud_server": state}}.server
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: `resource "hcloud_server" "web" {}`},
			{
				Config: w.pool() + instanceLikeServer + `
moved {
  from = hcloud_server.web
  to   = bettercompute_instance.web
}
`,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("bettercompute_instance.web", plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue("bettercompute_instance.web", tfjsonpath.New("ipv4"), knownvalue.NotNull()),
				}},
			},
		},
	})
}
