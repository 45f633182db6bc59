// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// TestSurprisedByAStateWithout: each attribute of a recorded object is gone from the
// state, as an older version leaves those that it doesn't know, or an editor. None of them
// replaces anything: what isn't recorded is no change.
func TestSurprisedByAStateWithout(t *testing.T) {
	everyThing(t, func(t *testing.T, p *surprised) {
		var values map[string]tftypes.Value
		if err := p.record(p.begin.state).value.As(&values); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if values[name].IsNull() {
				continue
			}
			t.Run(name, func(t *testing.T) {
				want := unmoved
				switch name {
				case "uri", "volume_id", "snapshot_id":
					want = distrusted
				case "machine_id": // it is in the uri too
					want = "plan none; another; gone"
				case "claim", "deletion_protection", "image", "labels", "on_image_change", "on_user_data_change", "pool", "volume":
					want = recordedAnew
				}
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					id := p.record(now).attribute(p.id)
					expect(t, p.meets(t, s, p.altered(t, now, name, nil), p.pools[0], p.thing.to, func() {
						if s.row(id) == "" {
							t.Errorf("the %s is gone", p.thing.name)
						}
					}), want)
				})
			})
		}
	})
}

// TestSurprisedByAForeignURI: the recorded uri, id or number is cut short, or another's.
func TestSurprisedByAForeignURI(t *testing.T) {
	everyThing(t, func(t *testing.T, p *surprised) {
		uri := p.record(p.begin.state).attribute("uri")
		path, query, _ := strings.Cut(uri, "?")
		scheme, rest, _ := strings.Cut(uri, "://")
		// What contradicts the uri is distrusted, unless wanted says otherwise.
		wanted := map[string]string{
			"a text for a number": misnumbered, "another claim": theirs, "the neighbour's claim": theirs,
		}
		if p.thing.name == "instance" {
			delete(wanted, "a text for a number")
			wanted["cut before "+path[strings.LastIndex(path, "/")+1:]] = unmoved
		}
		switch notAnother := strings.ReplaceAll(theirs, "claimed by another state", "another resource's volume"); {
		case p.thing.name == "instance":
		case strings.HasSuffix(p.thing.name, "snapshot"):
			wanted["the neighbour's number"] = "plan none [NOT_FOUND]; again none [NOT_FOUND]; left [NOT_FOUND]"
		default:
			wanted["the neighbour's number"] = notAnother
		}
		switch p.matrixCloud.name + " " + p.thing.name {
		case "hetzner volume":
			wanted["a number of nothing"] = lostData
		case "proxmox instance", "hetzner instance", "digitalocean instance":
		default:
			wanted["a number of nothing"] = misnumbered
		}
		if p.matrixCloud.name == "hetzner" { // its token's name is another, which nothing has
			wanted["another cloud's uri"] = "plan update [INVALID_CONFIG]; apply ok; gone"
		}
		changes := map[string][2]string{
			"an empty uri":           {"uri", ""},
			"no query":               {"uri", path},
			"no scheme":              {"uri", rest},
			"another cloud's uri":    {"uri", "hetzner-cloud://" + rest + "x"},
			"an unknown scheme":      {"uri", "acme-" + scheme + "://" + rest},
			"another account's uri":  {"uri", strings.Replace(uri, "/main/", "/other/", 1)},
			"another pool's uri":     {"uri", strings.Replace(uri, "/web/", "/db/", 1)},
			"the neighbour's uri":    {"uri", p.neighbours.attribute("uri")},
			"a pool's uri":           {"uri", p.pools[0]},
			"a text":                 {"uri", "nonsense"},
			"a control character":    {"uri", path + "\n?" + query},
			"another id":             {"id", "inst_0123456789abcdefghjkmnpqrs"},
			"the neighbour's id":     {"id", p.neighbours.attribute("id")},
			"the neighbour's number": {p.id, p.neighbours.attribute(p.idOf(p.neighbours))},
			"a number of nothing":    {p.id, "4711"},
			"a text for a number":    {p.id, "../../4711"},
			"another claim":          {"claim", "anotherclaimanotherclaim12"},
			"the neighbour's claim":  {"claim", p.neighbours.attribute("claim")},
		}
		for n, part := range strings.Split(path, "/") {
			if n > 2 {
				changes["cut before "+part] = [2]string{"uri", path[:strings.LastIndex(path, "/"+part)] + "?" + query}
			}
		}
		for _, what := range slices.Sorted(maps.Keys(changes)) {
			t.Run(what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, now := p.later(t)
					change := changes[what]
					expect(t, p.meets(t, s, p.altered(t, now, change[0], change[1]), p.pools[0], p.thing.to), cmp.Or(wanted[what], distrusted))
				})
			})
		}
	})
}
