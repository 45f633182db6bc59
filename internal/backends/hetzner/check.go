// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// maxUserDataKiB is the API's limit.
const maxUserDataKiB = 32

// CheckMachine implements [backends.Backend]. It reads the catalog, the image, and
// the networks, firewalls, placement group and SSH keys that the wish names: all at
// the same time, each once in ten minutes. A wish without such names costs no call
// for them. A named object that can't be looked up is no issue; see
// [Client.isMissing].
func (c *Client) CheckMachine(ctx context.Context, spec backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	issues := c.CheckForm(spec)
	var out backends.Resolved
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(lookupsAtOnce)
	var catalog *catalog
	needsCatalog := spec.Offer != "" || spec.Image != "" || spec.Region != ""
	if needsCatalog {
		group.Go(func() (err error) {
			catalog, err = c.catalog.Get(groupCtx)
			return err
		})
	}
	if spec.Image != "" {
		group.Go(func() error {
			_, err := c.images.get(groupCtx, spec.Image) // warms the cache while the catalog is on its way
			return err
		})
	}
	named := references(spec)
	missing := make([]bool, len(named))
	for i, r := range named {
		group.Go(func() (err error) {
			missing[i], err = c.isMissing(groupCtx, r.referred)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, issues, err
	}
	for i, r := range named {
		switch {
		case !missing[i]:
		case r.name != "":
			out.Warnings = append(out.Warnings, r.missingName())
		default:
			issues = append(issues, r.missing()...)
		}
	}
	if !needsCatalog {
		return out, issues, nil
	}

	t, offer, warning, issue := catalog.check(spec.Offer, spec.Region)
	out.Offer = offer
	issues, out.Warnings = note(issues, issue, out.Warnings, warning)
	if spec.Image != "" {
		id, warning, issue, err := c.resolveImage(ctx, spec.Image, t)
		if err != nil {
			return out, issues, err
		}
		out.ImageID = id
		issues, out.Warnings = note(issues, issue, out.Warnings, warning)
	}
	return out, issues, nil
}

func note(issues []*backends.Error, issue *backends.Error, warnings []string, warning string) ([]*backends.Error, []string) {
	if issue != nil {
		return append(issues, issue), warnings
	}
	if warning != "" {
		warnings = append(warnings, warning)
	}
	return issues, warnings
}

// check holds an offer and a region, either of which may be unknown (""), against
// the catalog.
func (c *catalog) check(name, region string) (t *hcloud.ServerType, offer *backends.Offer, warning string, issue *backends.Error) {
	locations := c.locations()
	if region != "" && !slices.Contains(locations, region) {
		issue = backends.Errorf(backends.InvalidInput, "There is no location %q at Hetzner Cloud.", region).At("region").
			WithRemedy("Use %s.", backends.Choice(locations))
		region = ""
	}
	if name == "" {
		return nil, nil, "", issue
	}
	t = c.types[name]
	if t == nil {
		if issue == nil {
			issue = backends.Errorf(backends.InvalidInput, "There is no server type %q.", name).At("offer").
				WithRemedy("Use %s.", backends.Choice(backends.Near(name, c.alternatives(region), backends.Nearest)))
		}
		return nil, nil, "", issue
	}
	if region == "" {
		return t, nil, "", issue
	}
	state, until := at(t, region)
	switch state {
	case absent:
		return t, nil, "", backends.Errorf(backends.InvalidInput, "%s is not offered in %s.", name, region).At("offer").
			WithRemedy("%s is offered in %s; in %s use %s.", name, backends.Choice(c.regionsOf(t)), region,
				backends.Choice(c.alternativesTo(t, region)))
	case gone:
		return t, nil, "", backends.Errorf(backends.InvalidInput, "%s was withdrawn from %s on %s.", name, region, day(until)).At("offer").
			WithRemedy("In %s use %s.", region, backends.Choice(c.alternativesTo(t, region)))
	case soldOut:
		issue = backends.Errorf(backends.CapacityUnavailable, "%s is out of stock in %s now.", name, region).At("offer").
			WithRemedy("In %s use %s, or wait.", region, backends.Choice(c.alternativesTo(t, region)))
		issue.Reason = backends.ReasonCapacity
	case deprecated:
		warning = fmt.Sprintf("The server type %s is deprecated in %s.", name, region)
		if !until.IsZero() {
			warning = fmt.Sprintf("The server type %s is deprecated: new servers can be made in %s until %s.", name, region, day(until))
		}
	}
	o := c.offer(t, region)
	return t, &o, warning, issue
}

// alternatives are the names that can be ordered in a region (anywhere when it is
// ""), the cheapest first.
func (c *catalog) alternatives(region string) []string {
	var out []string
	for _, o := range c.offers(false) {
		if (region == "" || o.Region == region) && o.Available && !slices.Contains(out, o.ID) {
			out = append(out, o.ID)
		}
	}
	return out
}

// alternativesTo are a few types of the same architecture that are no smaller, the
// cheapest first; failing that, any of the region.
func (c *catalog) alternativesTo(t *hcloud.ServerType, region string) []string {
	var like []string
	all := c.alternatives(region)
	for _, name := range all {
		o := c.types[name]
		if name != t.Name && o.Architecture == t.Architecture && o.Cores >= t.Cores && o.Memory >= t.Memory {
			like = append(like, name)
		}
	}
	if len(like) == 0 {
		like = slices.DeleteFunc(all, func(name string) bool { return name == t.Name })
	}
	return like[:min(backends.Nearest, len(like))]
}

// regionsOf are the locations where a type can be ordered.
func (c *catalog) regionsOf(t *hcloud.ServerType) []string {
	var out []string
	for _, l := range t.Locations {
		if state, _ := at(t, l.Location.Name); state == onSale || state == deprecated {
			out = append(out, l.Location.Name)
		}
	}
	slices.Sort(out)
	return out
}

// CheckForm implements [backends.Backend]. The options are held against the manifest
// again: what a plan didn't know was checked by nobody yet.
func (c *Client) CheckForm(spec backends.MachineSpec) []*backends.Error {
	issues := backends.Validate(machineFields(), spec.Options, backends.Path{attribute})
	if problem := backends.HostnameProblem(spec.Name); spec.Name != "" && problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "The name %q can't be used. %s", spec.Name, problem).At("name"))
	}
	if spec.Network != "" {
		if problem := checkID(spec.Network); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("network_id"))
		}
		if len(spec.Options.List("networks")) > 0 {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "networks and the common network_id exclude each other.").
				At(attribute, "networks").WithRemedy("Name the network in one of the two."))
		}
	}
	if issue := checkAddressless(spec); issue != nil {
		issues = append(issues, issue)
	}
	issues = append(issues, checkPublic(spec.Options)...)
	issues = append(issues, checkNetworks(spec.Options.List("networks"))...)
	issues = append(issues, checkLabels(spec.Labels, c.marks.prefix)...)
	return append(issues, spec.CheckUserData("Hetzner", maxUserDataKiB)...)
}

func checkNetworks(networks []any) []*backends.Error {
	var issues []*backends.Error
	seen := map[string]bool{}
	for i, e := range networks {
		n, ok := e.(backends.Values)
		if !ok {
			continue
		}
		id := n.String("network_id")
		if id != "" && seen[id] {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "The network %s is named twice.", id).
				At(attribute, "networks", i, "network_id"))
		}
		seen[id] = true
	}
	return issues
}

// checkPublic refuses public addresses that are wanted and not wanted, and more
// firewalls than a server takes.
func checkPublic(options backends.Values) []*backends.Error {
	var issues []*backends.Error
	for _, f := range families() {
		if options.Has(f.option) && options.Has(f.flag) && !options.Bool(f.flag) {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s = false and %s exclude each other.", f.flag, f.option).
				At(attribute, f.option).WithRemedy("Leave one of the two out."))
		}
	}
	if ids := firewallsOf(options); len(ids) > maxFirewalls {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "A server takes %d firewalls at most, not %d.", maxFirewalls, len(ids)).
			At(attribute, "firewall_ids"))
	}
	return issues
}

// checkAddressless refuses a server that nothing could reach. A network that isn't
// known yet is one to come.
func checkAddressless(spec backends.MachineSpec) *backends.Error {
	off := func(name string) bool { return spec.Options.Has(name) && !spec.Options.Bool(name) }
	network := spec.Network != "" || !spec.Knows("network_id") ||
		len(spec.Options.List("networks")) > 0 || backends.IsUnknown(spec.Options["networks"])
	if off("public_ipv4") && off("public_ipv6") && !network {
		return backends.Errorf(backends.InvalidInput, "A server without public addresses needs a private network.").
			At(attribute, "public_ipv4").WithRemedy("Set network_id or hetzner_cloud.networks, or leave one of public_ipv4 and public_ipv6 on.")
	}
	return nil
}
