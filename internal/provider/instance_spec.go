// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// instanceSpec is the machine that a plan asks for. userData is apart since a
// write-only value is in the configuration alone. What isn't known yet is empty.
func instanceSpec(plan record, pool reference.Reference, d *backends.Definition, userData string) backends.MachineSpec {
	name := plan.text("name")
	spec := backends.MachineSpec{
		Name:      name,
		Offer:     plan.text("offer"),
		Image:     plan.text("image"),
		Region:    plan.text("region"),
		SSHKeys:   plan.texts("ssh_keys"),
		UserData:  userData,
		Network:   plan.text("network_id"),
		Labels:    plan.textMap("labels"),
		Protected: plan.truth("deletion_protection"),
		Start:     plan.text("power") != powerOff,
		Options:   backends.WithDefaults(d.Manifest.Machine, instanceOptions(plan, d)),
	}
	for name, v := range plan.values {
		if !v.IsFullyKnown() {
			spec.Unknown = append(spec.Unknown, name)
		}
	}
	poolID := pool.PoolRef().ID()
	key := reference.InstanceID(poolID, name)
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountRef().ID(), Pool: poolID,
		Digest: backends.Digest(key, digestFields(spec)),
	}
	return spec
}

func digestFields(spec backends.MachineSpec) map[backends.DigestField]string {
	return map[backends.DigestField]string{
		backends.DigestOffer:    spec.Offer,
		backends.DigestImage:    spec.Image,
		backends.DigestRegion:   spec.Region,
		backends.DigestSSHKeys:  digestKeys(spec.SSHKeys),
		backends.DigestUserData: spec.UserData,
		backends.DigestNetwork:  spec.Network,
	}
}

func digestKeys(keys []string) string {
	trimmed := make([]string, len(keys))
	for i, k := range keys {
		trimmed[i] = strings.TrimSpace(k)
	}
	return strings.Join(trimmed, "\n")
}

// instanceOptions are the options of the pool's cloud; nil when there are none.
func instanceOptions(r record, d *backends.Definition) backends.Values {
	raw, ok := r.values[d.Attribute()]
	if !ok {
		return nil
	}
	options, _ := treeOf(raw).(backends.Values)
	return options
}

// userDataOf is the user data of a configuration, from wherever it is given;
// known is false while it isn't known.
func userDataOf(config record) (userData string, known bool) {
	for _, name := range []string{"user_data", "user_data_wo"} {
		if !config.isKnown(name) {
			return "", false
		}
		if !config.isNull(name) {
			return config.text(name), true
		}
	}
	return "", true
}
