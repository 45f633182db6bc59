// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// lookupsAtOnce bounds the reads of one check that are in flight.
const lookupsAtOnce = 8

// referredKind is a kind of object that a Droplet can be made with.
type referredKind string

const (
	vpcKind referredKind = "VPC"
	keyKind referredKind = "SSH key"
)

// vendors are the resources of DigitalOcean's own Terraform provider.
var vendors = map[referredKind]string{vpcKind: "digitalocean_vpc", keyKind: "digitalocean_ssh_key"}

// referred is an object that a wish names: a VPC by its id, an SSH key by id or
// fingerprint.
type referred struct {
	kind referredKind
	id   string
}

// found is what is known of an object that exists.
type found struct {
	region string // of a VPC
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
	add := func(kind referredKind, value any, check func(string) string, path ...any) {
		id, _ := value.(string)
		if id == "" || check(id) != "" {
			return
		}
		object := referred{kind, id}
		i := slices.IndexFunc(out, func(r reference) bool { return r.referred == object })
		if i < 0 {
			i = len(out)
			out = append(out, reference{referred: object})
		}
		out[i].paths = append(out[i].paths, path)
	}
	add(vpcKind, spec.Network, checkVPC, "network_id")
	for i, key := range spec.Options.List("ssh_key_ids") {
		add(keyKind, key, checkKey, attribute, "ssh_key_ids", i)
	}
	return out
}

type vpcAnswer struct {
	VPC *struct {
		ID     string `json:"id"`
		Region string `json:"region"`
	} `json:"vpc"`
}

type keyAnswer struct {
	Key *godo.Key `json:"ssh_key"`
}

// fetchReferred asks the API for one object. It fails with NOT_FOUND when the team
// has none, so that a miss isn't kept: the object may be made at any time.
func (c *Client) fetchReferred(ctx context.Context, r referred) (found, error) {
	what := "Reading the " + string(r.kind) + " " + r.id
	if r.kind == vpcKind {
		answer, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: at("vpcs", r.id)},
			func(a *vpcAnswer) bool { return a.VPC != nil && a.VPC.ID == r.id })
		if err != nil {
			return found{}, err
		}
		return found{region: answer.VPC.Region}, nil
	}
	// GET /v2/account/keys is limited to ten a minute, so that keys are read together;
	// one that was made since is asked for by itself.
	if keys, err := c.keys.Get(ctx); err != nil {
		return found{}, err
	} else if keys[r.id] {
		return found{}, nil
	}
	_, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: at("account", "keys", r.id)},
		func(a *keyAnswer) bool {
			return a.Key != nil && (strconv.Itoa(a.Key.ID) == r.id || a.Key.Fingerprint == r.id)
		})
	return found{}, err
}

func (c *Client) fetchKeys(ctx context.Context) (map[string]bool, error) {
	keys, err := list(ctx, c, "Reading the SSH keys", at("account", "keys"), nil, "ssh_keys", func(k godo.Key) bool { return k.ID > 0 })
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, k := range keys {
		out[strconv.Itoa(k.ID)] = true
		out[k.Fingerprint] = true
	}
	return out, nil
}

// lookUp tells what is wrong with naming the object; "" when nothing is. A look-up
// that fails for another reason than that the object is missing says nothing about
// the wish, so the check is left out and the creating call decides (a token with
// custom scopes may not read VPCs); but credentials that don't work are an error
// here as they are for the catalog, and so is the end of ctx.
func (c *Client) lookUp(ctx context.Context, r referred, region string) (problem string, err error) {
	is, err := c.referred.Get(ctx, r)
	switch {
	case err == nil && r.kind == vpcKind && region != "" && is.region != "" && is.region != region:
		return fmt.Sprintf("The VPC %s is in %s, and the machine is to be in %s.", r.id, is.region, region), nil
	case err == nil:
		return "", nil
	case ctx.Err() != nil,
		backends.HasCode(err, backends.InvalidConfig),
		backends.HasReason(err, backends.ReasonSecret),
		backends.HasReason(err, backends.ReasonCredentials):
		return "", err
	case backends.HasCode(err, backends.NotFound):
		return fmt.Sprintf("There is no %s %s in the account's team.", r.kind, r.id), nil
	}
	return "", nil
}

// issues are a problem's, one per place that names the object.
func (r reference) issues(problem string) []*backends.Error {
	if problem == "" {
		return nil
	}
	var issues []*backends.Error
	for _, path := range r.paths {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At(path...).
			WithRemedy("Use the id of a %s of this team and region. If DigitalOcean's own provider makes it, reference its id (%s.NAME.id).",
				r.kind, vendors[r.kind]))
	}
	return issues
}
