// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// askedInstance is an instance that an apply asked a cloud to attach a volume to, or
// to detach it from, without seeing the end of it: it was interrupted, ran out of
// time, or lost the answer. The cloud may go on, so that the volume shows there
// later. It is kept in private state: such an attachment is this state's all the same,
// to be shown in `instances`, taken off and released, and not a stranger's (DESIGN.md
// §5, foreign attachments).
type askedInstance struct {
	URI     string    `json:"uri"`
	Machine string    `json:"machine"` // the cloud's id
	Since   time.Time `json:"since"`
}

// askedFor is how long a cloud may take for an attach or detach that it was asked
// for. What doesn't show by then was refused, or taken off again.
const askedFor = time.Hour

// asking are the instances that an apply which failed may have asked for, together
// with what earlier ones asked for.
func asking(earlier []askedInstance, named ...namedInstance) []askedInstance {
	out := slices.Clone(earlier)
	for _, n := range named {
		asked := askedInstance{URI: n.uri, Machine: n.machine, Since: time.Now().UTC()}
		at := slices.IndexFunc(out, func(a askedInstance) bool { return a.Machine == n.machine })
		switch {
		case n.machine == "": // nothing can be asked for it
		case at >= 0:
			out[at] = asked
		default:
			out = append(out, asked)
		}
	}
	return out
}

// unsettled are those of what was asked for that a volume may still come to, or has
// come to: all but those that are recorded among the instances, and those that don't
// show after so long a time.
func unsettled(asked []askedInstance, v backends.Volume, recorded []namedInstance) []askedInstance {
	ours := machines(recorded)
	return slices.DeleteFunc(slices.Clone(asked), func(a askedInstance) bool {
		return slices.Contains(ours, a.Machine) ||
			!v.AttachedTo(a.Machine) && time.Since(a.Since) >= backends.Scale(askedFor)
	})
}

// askedInstances are the instances behind what was asked for. A uri that can't be
// read any more, as one that another version wrote, names none.
func askedInstances(registry *backends.Registry, asked []askedInstance) []namedInstance {
	var out []namedInstance
	for _, a := range asked {
		if ref, err := reference.ParseKind(registry, reference.KindInstance, a.URI); err == nil {
			out = append(out, namedInstance{uri: a.URI, ref: ref, machine: a.Machine})
		}
	}
	return out
}

// settlePause is the pause between two looks at whether a cloud has come to the end of
// what it was asked for.
const settlePause = 5 * time.Second

// settle does something again as long as the cloud refuses it for the volume's state,
// where machines that were asked for may be why: they show only when the cloud is done,
// and can be taken off then. The operation's timeout ends it.
func settle(ctx context.Context, machines []string, do func() error) error {
	for {
		err := do()
		if len(machines) == 0 || !refusedForState(err) || backends.Sleep(ctx, backends.Scale(settlePause)) != nil {
			return err
		}
	}
}

// refusedForState tells whether it was the cloud that refused something for an
// object's state, and not a rule of ours.
func refusedForState(err error) bool {
	e := backends.AsError(err)
	return e != nil && e.Code == backends.InvalidState && e.Details["status"] != nil
}

// askedMachines are the machines of what was asked for.
func askedMachines(asked []askedInstance) []string {
	out := make([]string, len(asked))
	for i, a := range asked {
		out[i] = a.Machine
	}
	return out
}

// pendingMachines are the machines that a record's attachments show as pending. The
// delete of a replaced or tainted volume isn't handed its private state, so what was
// asked for is there too.
func pendingMachines(r record) []string {
	var out []string
	for _, row := range attachmentsOf(r) {
		if id, ok := row["machine_id"].(string); ok && row["state"] == attachmentPending {
			out = append(out, id)
		}
	}
	return out
}

// withAsked adds the machines that were asked for to attachments, pending where the
// volume doesn't show there.
func withAsked(machines []string, asked []askedInstance) []string {
	out := slices.Concat(machines, askedMachines(asked))
	slices.Sort(out)
	return slices.Compact(out)
}
