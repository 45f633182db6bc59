// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reconcile"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// newInstancesDataSource is bettercompute_instances.
func newInstancesDataSource(clouds *backends.Registry) datasource.DataSource {
	return &inventory{
		clouds: clouds, name: "instances", list: "instances", noun: "machine",
		description: "What a cloud holds of ours for an account or a pool: an inventory, leftovers that no state has, and with `import { for_each }` " +
			"the way to take them in. Machines that are being deleted are left out. " +
			"Addresses are null on Proxmox VE, whose lists don't show them, also those that `ip_config` fixes: take them from the resource.",
		uri: "The instance's uri, to import it. Null where it can't be told: a uri holds the pool's name, of which a machine carries " +
			"only the hash, so read the `pool`, or name it in `pools`; and a machine that was renamed in the cloud has lost its own.",
		columns: map[string]schema.Attribute{
			"name":         computedText("The name in the cloud."),
			"machine_id":   computedText("The cloud's id."),
			"state":        computedText("`pending`, `running`, `stopped`, `rescue`, `error` or `unknown`."),
			"offer":        computedText("The size."),
			"ipv4":         computedText("One public IPv4 address."),
			"ipv6":         computedText("One public IPv6 address."),
			"private_ipv4": computedText("One private IPv4 address."),
			"address":      computedText("The address to connect to: the public IPv4 address, else the public IPv6 address, else the private one."),
		},
		rows: machineRows,
	}
}

// machineRows are the machines as the data source shows them.
func machineRows(ctx context.Context, account *reconcile.Account, filter backends.Filter, names inventoryNames) ([]any, error) {
	if _, ok := account.Backend.(backends.Lister); !ok {
		return nil, backends.Errorf(backends.Unsupported, "%s can't list machines.", account.Definition.Title)
	}
	machines, err := account.Objects(ctx, filter)
	rows := make([]any, len(machines))
	for i, m := range machines {
		v4, v6 := m.First(backends.IPv4, backends.Public), m.First(backends.IPv6, backends.Public)
		private := m.First(backends.IPv4, backends.Private)
		rows[i] = names.row(m.About(), m.Region, m.Labels, map[string]string{
			"machine_id": m.ID, "offer": m.Offer, "ipv4": v4, "ipv6": v6, "private_ipv4": private,
			"address": firstOf(v4, v6, private, m.First(backends.IPv6, backends.Private)),
		}, func(pool reference.Reference) reference.Reference { return pool.InstanceRef(m.Name, m.ID) })
	}
	return rows, err
}
