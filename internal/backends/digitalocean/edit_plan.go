// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// PlanEdit implements [backends.Editor].
func (c *Client) PlanEdit(from, to backends.MachineSpec) []backends.Effect {
	var out []backends.Effect
	for _, path := range backends.Differing(from, to, attribute, machineFields(c.tags.prefix)) {
		out = append(out, effect(path, from, to))
	}
	return out
}

// effect is what becomes of one input that differs.
func effect(path backends.Path, from, to backends.MachineSpec) backends.Effect {
	e := backends.Effect{Path: path} // in place
	switch path[len(path)-1] {
	case "network_id":
		e.Takes = backends.Replace
		e.Note = "A Droplet stays in the VPC that it was made in."
	case "ipv6":
		switch {
		case backends.IsUnknown(to.Options["ipv6"]) || to.Options.Bool("ipv6"):
			e.Addresses = true
			e.Note = "DigitalOcean gives the Droplet an IPv6 address, which can't be taken back, and configures it only in new Droplets: in this one it has to be set up by hand."
		case from.Options.Bool("ipv6"):
			e.Takes = backends.NextCreation
			e.Note = "DigitalOcean can't take IPv6 from a Droplet: this one keeps its address."
		}
	case "monitoring":
		e.Takes = backends.NextCreation
		e.Note = "DigitalOcean installs its metrics agent only in new Droplets. In this one it can be installed or removed by hand."
	case "droplet_agent":
		e.Takes = backends.NextCreation
		e.Note = "DigitalOcean installs the agent only in new Droplets. In this one it can be installed or removed by hand."
	case "ssh_key_ids":
		e.Takes = backends.NextCreation
		e.Note = "DigitalOcean puts keys only on new Droplets."
	}
	return e
}

// Shown implements [backends.Editor]. Which keys a Droplet was made with can't be read.
func (c *Client) Shown(ctx context.Context, m backends.Machine, to backends.MachineSpec) (backends.MachineSpec, error) {
	what := "Reading " + called(m)
	d, err := c.droplet(ctx, what, m.ID)
	if err != nil {
		return to, err
	}
	shown := to
	shown.Name, shown.Options = d.Name, to.Options.Clone()
	if to.Network != "" {
		shown.Network = d.VPCUUID
	}
	if to.Labels != nil {
		shown.Labels = map[string]string{}
		for key, value := range to.Labels {
			if hasTag(d.Tags, labelTag(key, value)) {
				shown.Labels[key] = value
			}
		}
	}
	if to.Options.Has("tags") {
		shown.Options["tags"] = slices.DeleteFunc(slices.Clone(to.Options.List("tags")), func(tag any) bool {
			text, ok := tag.(string)
			return ok && !hasTag(d.Tags, text)
		})
	}
	for _, feature := range []string{featureBackups, featureIPv6, "monitoring", "droplet_agent"} {
		if to.Options.Has(feature) {
			shown.Options[feature] = hasFeature(d, feature)
		}
	}
	return shown, c.showPolicy(ctx, what, d, shown.Options)
}

// showPolicy puts the Droplet's backup policy in the place of the wished, as far as the
// wish goes.
func (c *Client) showPolicy(ctx context.Context, what string, d *godo.Droplet, options backends.Values) error {
	wished := options.Object("backup_policy")
	if wished == nil {
		return nil
	}
	delete(options, "backup_policy")
	if !hasFeature(d, featureBackups) {
		return nil
	}
	policy, err := c.backupPolicy(ctx, what, d.ID)
	if err != nil || policy == nil {
		return err
	}
	shown := backends.Values{"plan": policy.Plan}
	if wished.Has("weekday") && policy.Weekday != "" {
		shown["weekday"] = strings.ToUpper(policy.Weekday)
	}
	if wished.Has("hour") {
		shown["hour"] = int64(policy.Hour)
	}
	options["backup_policy"] = shown
	return nil
}
