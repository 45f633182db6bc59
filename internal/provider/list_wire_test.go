// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// listed is one result of a list resource.
type listed struct {
	name, uri string
	object    object
}

// list asks for a list resource, as `terraform query` does; no CLI of today's gate can.
func (w *wire) list(resource string, given map[string]tftypes.Value, limit int64, include bool) ([]listed, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	server, ok := w.server.(tfprotov6.ListResourceServer)
	if !ok {
		w.t.Fatal("the provider lists nothing")
	}
	schemas, err := w.server.GetProviderSchema(w.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	typ := schemas.ListResourceSchemas[resource].ValueType()
	values := nulls(typ)
	maps.Copy(values, given)
	config := w.dynamic(typ, tftypes.NewValue(typ, values))
	valid, err := server.ValidateListResourceConfig(w.t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: resource, Config: config})
	if err != nil {
		w.t.Fatal(err)
	}
	diags := valid.Diagnostics
	if errorsOf(diags) != "" {
		return nil, diags
	}
	stream, err := server.ListResource(w.t.Context(), &tfprotov6.ListResourceRequest{TypeName: resource, Config: config, Limit: limit, IncludeResource: include})
	if err != nil {
		w.t.Fatal(err)
	}
	identity := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"uri": tftypes.String}}
	var out []listed
	for result := range stream.Results {
		diags = append(diags, result.Diagnostics...)
		if result.Identity == nil {
			continue
		}
		value, err := result.Identity.IdentityData.Unmarshal(identity)
		if err != nil {
			w.t.Fatal(err)
		}
		one := listed{name: result.DisplayName, uri: object{value: value}.text(w.t, "uri")}
		if result.Resource != nil {
			one.object = object{value: w.value(resource, result.Resource)}
		}
		out = append(out, one)
	}
	return out, diags
}

// importing is the state after an import by uri and the refresh that follows it.
func (w *wire) importing(resource, uri string) object {
	w.t.Helper()
	resp, err := w.server.ImportResourceState(w.t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: resource, ID: uri})
	if err != nil {
		w.t.Fatal(err)
	}
	if problems := errorsOf(resp.Diagnostics); problems != "" || len(resp.ImportedResources) != 1 {
		w.t.Fatalf("the import of %s: %s", uri, problems)
	}
	imported := resp.ImportedResources[0]
	refreshed, diags := w.read(resource, object{w.value(resource, imported.State), imported.Private})
	return done(w.t, refreshed, diags)
}

// What is listed is what a pool holds, with what an import of it records: so that the
// configuration that a core writes of it plans nothing but the taking over.
func TestList(t *testing.T) {
	o := newOcean(t, oceanemulator.Options{})
	w := o.wire()
	pool := map[string]tftypes.Value{"pool": textValue(oceanPoolURI)}
	offers := func(name string) tftypes.Value {
		return instanceConfig(w, map[string]tftypes.Value{
			"pool": pool["pool"], "name": textValue(name), "offer": textValue("s-1vcpu-1gb"), "image": textValue("ubuntu-24-04-x64"),
		})
	}
	uris := map[string][]string{}
	for i := range 3 {
		made, diags := w.apply(t.Context(), instanceType, w.none(instanceType), offers(fmt.Sprintf("web-%d", i)))
		uris[instanceType] = append(uris[instanceType], done(t, made, diags).text(t, "uri"))
	}
	made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), volumeConfig(w, pool))
	volume := done(t, made, diags).text(t, "uri")
	uris[volumeType] = []string{volume}
	made, diags = w.apply(t.Context(), snapshotType, w.none(snapshotType), snapshotConfig(w, volume, "first"))
	uris[snapshotType] = []string{done(t, made, diags).text(t, "uri")}
	o.vendorsDroplet("stranger")

	w = o.wire()
	for resource, want := range uris {
		all, diags := w.list(resource, pool, 0, true)
		if len(diags) > 0 || len(all) != len(want) {
			t.Fatalf("%s: %d listed, %s %s", resource, len(all), errorsOf(diags), warned(diags))
		}
		for i, one := range all {
			if one.uri != want[i] || one.name == "" {
				t.Errorf("%s: %q is %s, not %s", resource, one.name, one.uri, want[i])
			}
			if imported := w.importing(resource, one.uri); !withoutDefaults(t, imported).Equal(withoutDefaults(t, one.object)) {
				t.Errorf("listed\n%s\nimported\n%s", one.object.value, imported.value)
			}
		}
	}
	if some, diags := w.list(instanceType, pool, 2, false); len(some) != 2 || len(diags) > 0 || some[0].object.value.Type() != nil {
		t.Errorf("with a limit: %+v %s", some, warned(diags))
	}
	// Of an account, those whose pool is named.
	account := map[string]tftypes.Value{"provider_account": textValue(oceanAccountURI)}
	if none, diags := w.list(instanceType, account, 0, false); len(none) > 0 || !strings.Contains(warned(diags), "3 machines have no uri") {
		t.Errorf("without its pools: %+v %s", none, warned(diags))
	}
	account["pools"] = tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{textValue("web")})
	if all, diags := w.list(instanceType, account, 0, false); len(all) != 3 || len(diags) > 0 {
		t.Errorf("with its pools: %+v %s", all, warned(diags))
	}
}

// withoutDefaults is an object without what an import leaves to defaults.
func withoutDefaults(t *testing.T, o object) tftypes.Value {
	t.Helper()
	values := o.attributes(t)
	delete(values, "timeouts")
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{}}
	for name, v := range values {
		typ.AttributeTypes[name] = v.Type()
	}
	return tftypes.NewValue(typ, values)
}

func TestListRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		given map[string]tftypes.Value
		want  string
	}{
		"nothing":       {nil, "INVALID_INPUT: Neither provider_account nor pool is set"},
		"both":          {map[string]tftypes.Value{"pool": textValue(poolURI), "provider_account": textValue(accountURI)}, "INVALID_INPUT: "},
		"no uri":        {map[string]tftypes.Value{"pool": textValue("web")}, "INVALID_INPUT: "},
		"a pool's name": {map[string]tftypes.Value{"provider_account": textValue(accountURI), "pools": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{textValue("A b")})}, "INVALID_INPUT: "},
	} {
		if _, diags := newWorld(t).wire().list(instanceType, test.given, 0, true); !strings.Contains(errorsOf(diags), test.want) {
			t.Errorf("%s: %q", name, errorsOf(diags))
		}
	}
	cloud := newWorld(t)
	cloud.refuse(500)
	if all, diags := cloud.wire().list(instanceType, map[string]tftypes.Value{"pool": textValue(poolURI)}, 0, true); len(all) > 0 || !strings.Contains(errorsOf(diags), "PROVIDER_ERROR: ") {
		t.Errorf("%+v %q", all, errorsOf(diags))
	}
}
