// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"
	"maps"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The bounds of a volume's size in GiB on any cloud (specification,
// providerVolumes.create).
const (
	MinVolumeGiB = 1
	MaxVolumeGiB = 16384
)

// CheckVolumeForm reports what is wrong with a wish and needs no call to see: an
// ability that the cloud doesn't have, the specification's rules, the cloud's own.
func (a *Account) CheckVolumeForm(spec backends.VolumeSpec) []*backends.Error {
	store := a.storeOf(spec.Kind)
	if store == nil {
		if !spec.Knows("kind") {
			return nil
		}
		return []*backends.Error{a.noVolumes(spec.Kind)}
	}
	return explained(append(a.checkVolumeRules(spec), store.CheckForm(spec)...))
}

// CheckVolume holds a wish against the catalog too. The error is for a catalog that
// can't be read; the issues of the form come with it.
func (a *Account) CheckVolume(ctx context.Context, spec backends.VolumeSpec) ([]*backends.Error, error) {
	store := a.storeOf(spec.Kind)
	if store == nil {
		return a.CheckVolumeForm(spec), nil
	}
	issues, err := store.Check(ctx, spec)
	return explained(append(a.checkVolumeRules(spec), issues...)), err
}

// explained shows a reason that the specification names among an issue's details.
func explained(issues []*backends.Error) []*backends.Error {
	for i, e := range issues {
		if _, ok := e.Details["reason"]; !ok && e.Reason == backends.ReasonSize {
			c := *e
			c.Details = maps.Clone(e.Details)
			if c.Details == nil {
				c.Details = map[string]any{}
			}
			c.Details["reason"] = string(e.Reason)
			issues[i] = &c
		}
	}
	return issues
}

// checkVolumeRules are the rules that are the same on every cloud.
func (a *Account) checkVolumeRules(spec backends.VolumeSpec) []*backends.Error {
	var issues []*backends.Error
	refuse := func(path, message string) {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", message).At(path))
	}
	if spec.Knows("size_gib") && (spec.SizeGiB < MinVolumeGiB || spec.SizeGiB > MaxVolumeGiB) {
		e := backends.Errorf(backends.InvalidInput, "A volume has %d to %d GiB.", MinVolumeGiB, MaxVolumeGiB).At("size_gib")
		e.Reason = backends.ReasonSize
		issues = append(issues, e)
	}
	if spec.Kind == backends.SharedVolume {
		if spec.Knows("network_id") && spec.Network == "" {
			refuse("network_id", "A shared volume needs a network_id: the network whose machines mount it.")
		}
		if spec.Filesystem != "" {
			refuse("filesystem", "A shared volume takes no filesystem: it is a network file share.")
		}
		if spec.Marks.GoesWithMachine {
			refuse("delete_with_instance", "A shared volume can't go with one instance: many may mount it.")
		}
	} else if spec.Network != "" {
		refuse("network_id", "A block volume is on no network: network_id is for shared volumes.")
	}
	if snapshots := a.snapshotsOf(spec.Kind); spec.Restores && snapshots == nil {
		issues = append(issues, a.noSnapshots(spec.Kind).At("from_snapshot"))
	}
	return issues
}

// CheckAttachable reports which machines can't have a volume attached, each at
// instances[i]; nil machines aren't known and are passed over.
func (a *Account) CheckAttachable(spec backends.VolumeSpec, machines []*backends.Machine) []*backends.Error {
	var issues []*backends.Error
	for i, m := range machines {
		if m == nil {
			continue
		}
		var e *backends.Error
		switch {
		case m.About().Going():
			e = backends.Errorf(backends.InvalidState, "The machine %q (%s) is being deleted.", m.Name, m.ID)
		case m.Region != "" && spec.Region != "" && m.Region != spec.Region:
			e = backends.Errorf(backends.InvalidInput, "The machine %q (%s) is in the region %s, the volume in %s.",
				m.Name, m.ID, m.Region, spec.Region).
				WithRemedy("A volume can only be attached in its own region.")
		case spec.Kind == backends.SharedVolume && spec.Network != "" && m.Network != spec.Network:
			on := "It is on no private network"
			if m.Network != "" {
				on = fmt.Sprintf("It is on the network %s", m.Network)
			}
			e = backends.Errorf(backends.InvalidInput, "The machine %q is not on the volume's network. %s, the volume on %s.", m.Name, on, spec.Network).
				WithRemedy("Only machines of a shared volume's network can mount it.")
		default:
			continue
		}
		issues = append(issues, e.At("instances", i))
	}
	return issues
}
