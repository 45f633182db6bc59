// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
)

// call calls a function; an argument "" is null.
func (w *wire) call(function string, arguments ...string) (string, *tfprotov6.FunctionError) {
	w.t.Helper()
	req := &tfprotov6.CallFunctionRequest{Name: function}
	for _, a := range arguments {
		v := tftypes.NewValue(tftypes.String, a)
		if a == "" {
			v = tftypes.NewValue(tftypes.String, nil)
		}
		req.Arguments = append(req.Arguments, w.dynamic(tftypes.String, v))
	}
	resp, err := w.server.CallFunction(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.Error != nil {
		return "", resp.Error
	}
	v, err := resp.Result.Unmarshal(tftypes.String)
	if err != nil {
		w.t.Fatal(err)
	}
	var out string
	if err := v.As(&out); err != nil {
		w.t.Fatal(err)
	}
	return out, nil
}

func TestUriFunctions(t *testing.T) {
	w := newWorld(t).wire()
	for _, test := range []struct {
		function  string
		arguments []string
		want      string
	}{
		{"pool_uri", []string{accountURI, "web"}, poolURI},
		{"instance_uri", []string{poolURI, "web-0", "4711"}, "hetzner-cloud://root/main/web/instances/web-0/4711?token=env://" + tokenVariable},
		{"instance_uri", []string{poolURI, "web-0", ""}, "hetzner-cloud://root/main/web/instances/web-0?token=env://" + tokenVariable},
		// A pool's own keys aren't in the uris of what is in it.
		{"instance_uri", []string{"hetzner-cloud://root/main/web?pool.adopt=true&token=env://" + tokenVariable, "web-0", "1"},
			"hetzner-cloud://root/main/web/instances/web-0/1?token=env://" + tokenVariable},
		{"volume_uri", []string{poolURI, "data"}, volumeURI},
		{"snapshot_uri", []string{volumeURI, "first"}, "hetzner-cloud://root/main/web/volumes/data/snapshots/first?token=env://" + tokenVariable},
	} {
		if got, problem := w.call(test.function, test.arguments...); problem != nil || got != test.want {
			t.Errorf("%s(%q) is %q, %+v; not %q", test.function, test.arguments, got, problem, test.want)
		}
	}
	for _, test := range []struct {
		function  string
		arguments []string
		at        int64
		want      string
	}{
		{"instance_uri", []string{"pool_0123", "web-0", "1"}, 0, "INVALID_INPUT: "},
		{"instance_uri", []string{accountURI, "web-0", "1"}, 0, "INVALID_INPUT: This is the uri of an account"},
		{"instance_uri", []string{poolURI, "Web_0", "1"}, 1, "INVALID_INPUT: "},
		{"instance_uri", []string{poolURI, "web-0", "a\x00b"}, 2, "INVALID_INPUT: "},
		{"volume_uri", []string{poolURI, "Data_1"}, 1, "INVALID_INPUT: "},
		{"snapshot_uri", []string{poolURI, "first"}, 0, "INVALID_INPUT: This is the uri of a pool"},
		{"pool_uri", []string{accountURI, "A b"}, 1, "INVALID_INPUT: "},
	} {
		_, problem := w.call(test.function, test.arguments...)
		if problem == nil || problem.FunctionArgument == nil || *problem.FunctionArgument != test.at || !strings.HasPrefix(problem.Text, test.want) {
			t.Errorf("%s(%q): %+v", test.function, test.arguments, problem)
		}
	}
}

// Machines that were made by hand are taken in by one import block.
func TestUriFunctionImportsMany(t *testing.T) {
	w := newWorld(t)
	ids := map[string]string{}
	for _, name := range []string{"web-0", "web-1"} {
		server, _ := w.vendorsServer(name)
		ids[name] = name + " = \"" + strconv.FormatInt(server.ID, 10) + "\""
	}
	resource.ParallelTest(t, resource.TestCase{
		ProtoV6ProviderFactories: w.factories(),
		Steps: []resource.TestStep{
			{Config: w.pool()},
			{
				Config: `terraform {
  required_providers {
    bettercompute = {
      source = "hashicorp/bettercompute"
    }
  }
}
` + w.pool() + `
locals {
  machines = { ` + ids["web-0"] + `, ` + ids["web-1"] + ` }
}
import {
  to = bettercompute_instance.first
  id = provider::bettercompute::instance_uri(bettercompute_pool.web.uri, "web-0", local.machines.web-0)
}
import {
  to = bettercompute_instance.second
  id = provider::bettercompute::instance_uri(bettercompute_pool.web.uri, "web-1", local.machines["web-1"])
}
resource "bettercompute_instance" "first" {
  name  = "web-0"
  pool  = bettercompute_pool.web.uri
  offer = "cx23"
  image = "ubuntu-24.04"
}
resource "bettercompute_instance" "second" {
  name  = "web-1"
  pool  = bettercompute_pool.web.uri
  offer = "cx23"
  image = "ubuntu-24.04"
}
output "same" {
  value = bettercompute_instance.first.uri == provider::bettercompute::instance_uri(bettercompute_pool.web.uri, "web-0", bettercompute_instance.first.machine_id)
}
`,
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("same", knownvalue.Bool(true))},
			},
			check(func() {
				if all := w.hetzner.Servers(); len(all) != 2 {
					t.Errorf("the cloud has %+v", all)
				}
			}),
		},
	})
}
