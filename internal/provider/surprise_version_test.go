// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// TestSurprisedByAnotherVersion: a state as other versions of the provider write it, with
// attributes that this one doesn't have, or without some that it has; and what is kept
// beside the attributes gone, or of another form. There is one version of the schema as
// yet, 0: what a state of it lacks is null, and what it has too much is dropped.
func TestSurprisedByAnotherVersion(t *testing.T) {
	everyThing(t, func(t *testing.T, p *surprised) {
		block := p.block()
		// Attributes that every version must have are those that name the object.
		optional := []string{"state", "message", "urn", "price_per_hour", "currency", "image_id", "device", "mount", "created_at", "observed_size_gib"}
		for what, test := range map[string]struct {
			change func(attributes map[string]any)
			want   string
		}{
			"the same": {func(map[string]any) {}, unmoved},
			"more": {func(attributes map[string]any) {
				attributes["from_the_future"] = map[string]any{"a": []any{1, "b", nil}}
			}, unmoved},
			"less": {func(attributes map[string]any) {
				maps.DeleteFunc(attributes, func(name string, _ any) bool { return slices.Contains(optional, name) })
			}, unmoved},
			"nothing but the uri and the number": {func(attributes map[string]any) {
				maps.DeleteFunc(attributes, func(name string, _ any) bool {
					return !slices.Contains([]string{"uri", "machine_id", "volume_id", "snapshot_id"}, name)
				})
			}, "plan update; apply ok; gone"},
		} {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					r := p.record(now)
					attributes, ok := jsonOf(t, r.value).(map[string]any)
					if !ok {
						t.Fatal("a resource is no object")
					}
					test.change(attributes)
					text, err := json.Marshal(attributes)
					if err != nil {
						t.Fatal(err)
					}
					w := s.process()
					resp, err := w.server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
						TypeName: block.typ, Version: 0, RawState: &tfprotov6.RawState{JSON: text},
					})
					if err != nil || errorsOf(resp.Diagnostics) != "" {
						t.Fatal(err, errorsOf(resp.Diagnostics))
					}
					r.value = w.value(block.typ, resp.UpgradedState)
					now[block.address] = r
					expect(t, p.meets(t, s, now, p.pools[0], p.thing.to), test.want)
				})
			})
		}
		for what, private := range map[string][]byte{
			"no private state":    nil,
			"an empty one":        []byte(`{}`),
			"another form of it":  privateOf(t, `[1, 2]`),
			"other types in it":   privateOf(t, `{"digest": 5, "accepted": "x", "half_made": "yes", "id": {}}`),
			"a later form of it":  privateOf(t, `{"schema": 7}`),
			"deeply nested in it": privateOf(t, `{"accepted": {"labels": {"app": {"a": {"b": []}}}}}`),
		} {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					r := p.record(now)
					r.private = private
					now[block.address] = r
					expect(t, p.meets(t, s, now, p.pools[0], p.thing.to), unmoved)
				})
			})
		}
	})
}

// privateOf is private state as the framework writes it, with a text where the provider
// keeps what it has observed.
func privateOf(t *testing.T, text string) []byte {
	t.Helper()
	out, err := json.Marshal(map[string][]byte{"observed": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// jsonOf is a value as a state file has it.
func jsonOf(t *testing.T, v tftypes.Value) any {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if v.IsNull() {
		return nil
	}
	switch typ := v.Type(); {
	case typ.Is(tftypes.String):
		var out string
		must(v.As(&out))
		return out
	case typ.Is(tftypes.Bool):
		var out bool
		must(v.As(&out))
		return out
	case typ.Is(tftypes.Number):
		var out *big.Float
		must(v.As(&out))
		return json.Number(out.Text('f', -1))
	case typ.Is(tftypes.Object{}), typ.Is(tftypes.Map{}):
		values, out := map[string]tftypes.Value{}, map[string]any{}
		must(v.As(&values))
		for name, value := range values {
			out[name] = jsonOf(t, value)
		}
		return out
	default:
		var values []tftypes.Value
		must(v.As(&values))
		out := make([]any, len(values))
		for i, value := range values {
			out[i] = jsonOf(t, value)
		}
		return out
	}
}
