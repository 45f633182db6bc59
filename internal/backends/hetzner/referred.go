// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// lookupsAtOnce bounds the reads of one check that are in flight.
const lookupsAtOnce = 8

// kind is a kind of object that a server can be made with.
type kind struct {
	title  string // in a sentence
	path   string // of the API: /networks/{id}
	object string // the answer's field
	vendor string // the resource of Hetzner's own Terraform provider
}

var (
	networkKind        = kind{"network", "networks", "network", "hcloud_network"}
	firewallKind       = kind{"firewall", "firewalls", "firewall", "hcloud_firewall"}
	placementGroupKind = kind{"placement group", "placement_groups", "placement_group", "hcloud_placement_group"}
	primaryIPKind      = kind{"primary IP", "primary_ips", "primary_ip", "hcloud_primary_ip"}
	sshKeyKind         = kind{"SSH key", "ssh_keys", "ssh_key", "hcloud_ssh_key"}
)

// referred is an object that a wish names. One of id and name is set; only SSH keys
// go by name too.
type referred struct {
	kind kind
	id   int64
	name string
}

// reference is a [referred] and where the wish names it.
type reference struct {
	referred
	paths []backends.Path
}

// references are the objects that a wish names, each once, in the order of the
// wish. What isn't known yet is left out, and so is what [Client.CheckForm] refuses.
func references(spec backends.MachineSpec) []reference {
	var out []reference
	add := func(what kind, value any, path ...any) {
		text, _ := value.(string)
		object := referred{kind: what}
		id, isID := parseID(text)
		switch {
		case isID:
			object.id = id
		case text != "" && what == sshKeyKind: // as in the creating call
			object.name = text
		default:
			return
		}
		i := slices.IndexFunc(out, func(r reference) bool { return r.referred == object })
		if i < 0 {
			i = len(out)
			out = append(out, reference{referred: object})
		}
		out[i].paths = append(out[i].paths, path)
	}
	add(networkKind, spec.Network, "network_id")
	for i, e := range spec.Options.List("networks") {
		if n, ok := e.(backends.Values); ok {
			add(networkKind, n["network_id"], attribute, "networks", i, "network_id")
		}
	}
	for i, id := range spec.Options.List("firewall_ids") {
		add(firewallKind, id, attribute, "firewall_ids", i)
	}
	add(placementGroupKind, spec.Options["placement_group_id"], attribute, "placement_group_id")
	for _, f := range families() {
		add(primaryIPKind, spec.Options[f.option], attribute, f.option)
	}
	for i, key := range spec.Options.List("ssh_key_ids") {
		add(sshKeyKind, key, attribute, "ssh_key_ids", i)
	}
	return out
}

// fetchReferred asks the API for one object. It fails with NOT_FOUND when the project
// has none, so that a miss isn't kept: the object may be made at any time.
//
// Nothing more is held against the wish than that the object exists. A network's
// zones, say, are those of its subnets, and a subnet may be made in this very apply.
func (c *Client) fetchReferred(ctx context.Context, r referred) (struct{}, error) {
	var found struct{}
	what := "Reading the " + r.kind.title + " " + r.String()
	if r.name != "" {
		keys, err := all(ctx, what,
			func(ctx context.Context, number int) ([]*hcloud.SSHKey, *hcloud.Response, error) {
				return c.api.SSHKey.List(ctx, hcloud.SSHKeyListOpts{
					ListOpts: hcloud.ListOpts{Page: number, PerPage: perPage}, Name: r.name,
				})
			})
		// A server that ignores the filter must not vouch for the key.
		named := func(k *hcloud.SSHKey) bool { return k.Name == r.name && k.ID > 0 }
		if err == nil && !slices.ContainsFunc(keys, named) {
			err = backends.Errorf(backends.NotFound, "%s: there is none.", what)
		}
		return found, err
	}
	var body map[string]json.RawMessage
	return found, get(ctx, c.api, what, fmt.Sprintf("/%s/%d", r.kind.path, r.id), &body, func() bool {
		var object struct {
			ID int64 `json:"id"`
		}
		return json.Unmarshal(body[r.kind.object], &object) == nil && object.ID == r.id
	})
}

// isMissing tells whether the project lacks the object. A look-up that fails for
// another reason says nothing about the wish, so the check is left out and the
// creating call decides; but credentials that don't work are an error here as they
// are for the catalog, and so is the end of ctx.
func (c *Client) isMissing(ctx context.Context, r referred) (bool, error) {
	_, err := c.referred.Get(ctx, r)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil,
		backends.HasCode(err, backends.InvalidConfig),
		backends.HasReason(err, backends.ReasonSecret),
		backends.HasReason(err, backends.ReasonCredentials):
		return false, err
	}
	return backends.HasCode(err, backends.NotFound), nil
}

// missing are the issues of an object that the project lacks, one per place that
// names it. An id is given out when its object is made, so one that isn't there is
// wrong or gone.
func (r reference) missing() []*backends.Error {
	var issues []*backends.Error
	for _, path := range r.paths {
		e := backends.Errorf(backends.InvalidInput, "There is no %s %s in the account's project.", r.kind.title, r.referred).At(path...)
		issues = append(issues, e.WithRemedy("Use the id of a %s of this project; another project's can't be used. "+
			"If Hetzner's own provider makes it, reference its id (%s.NAME.id).", r.kind.title, r.kind.vendor))
	}
	return issues
}

// missingName is the warning of a name that nothing has. A name is known before its
// object exists, so the same apply may still make it.
func (r reference) missingName() string {
	return fmt.Sprintf("There is no %s %s in the account's project. If this apply doesn't make it first, the creation will be refused; "+
		"reference its id (%s.NAME.id), and it is made first and checked.", r.kind.title, r.referred, r.kind.vendor)
}

// String is the id, or the name in quotes.
func (r referred) String() string {
	if r.name != "" {
		return fmt.Sprintf("%q", r.name)
	}
	return fmt.Sprint(r.id)
}
