// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// MakeMachine implements [backends.Backend]: it clones the template into the first
// free slot of the key, with our line in the description, and waits for the clone. A
// slot that holds a VM with the key is a [backends.NameTaken]; its marks are to be
// had from GetMachine. What else there is to do, FinishMachine does. A wait for the
// clone that ends too early is an error beside the machine that is being made.
func (c *Client) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	if issues := c.CheckForm(spec); len(issues) > 0 {
		return backends.Machine{}, issues[0]
	}
	if spec.Offer == "" {
		return backends.Machine{}, backends.Errorf(backends.InvalidInput, "An offer is required.").At("offer")
	}
	if _, _, issue := c.checkSize(spec.Offer, nil, ""); issue != nil {
		return backends.Machine{}, issue
	}
	template, issue, err := c.template(ctx, spec.Image, c.target(spec))
	if err != nil {
		return backends.Machine{}, err
	}
	if issue != nil {
		return backends.Machine{}, issue
	}
	// What can't be finished isn't begun.
	if issues, _ := c.checkFit(spec, template, size{}); len(issues) > 0 {
		return backends.Machine{}, issues[0]
	}
	cl := &cloning{
		Client: c, spec: spec, template: template, note: c.noteFor(spec, template), what: "Creating VM " + spec.Name,
		description: template.config.get("description"),
	}
	if err := checkNote(cl.note); err != nil {
		return backends.Machine{}, err
	}
	if hasUserData(spec) {
		if _, err := c.ready.Get(ctx); err != nil {
			return backends.Machine{}, err
		}
	}
	for n := 0; ; n++ {
		vmid, holder, err := cl.slot(ctx)
		switch {
		case err != nil:
			return backends.Machine{}, err
		case holder != nil:
			return backends.Machine{}, cl.taken(*holder)
		}
		made, err := cl.into(ctx, vmid)
		switch {
		case err != nil && made != nil:
			return *made, err
		case err != nil:
			return backends.Machine{}, err
		case made != nil:
			return cl.passed(ctx, *made)
		}
		if err := c.pause(ctx, n); err != nil {
			return backends.Machine{}, err
		}
	}
}

// cloning is the making of one VM.
type cloning struct {
	*Client
	spec     backends.MachineSpec
	template *vm
	note     note
	what     string
	// description is what else the VM's says.
	description string
	moved       bool // the template was looked for anew
}

// taken says that a VM with the key is there. It is remembered, so that lists show it
// although it may have no tags yet.
func (cl *cloning) taken(holder backends.Machine) error {
	if vmid, err := strconv.Atoi(holder.ID); err == nil && !holder.Marks.Complete {
		cl.setHalfMade(vmid, noteOfMachine(holder, holder.Marks))
	}
	return &backends.NameTaken{Holder: holder.About()}
}

// into clones the template into a VMID. A nil machine without an error asks for
// another look at the slots: the VMID is taken by now, or a lock could not be had. A
// machine with an error is one that is being made, as far as is known when the wait for
// it ends.
func (cl *cloning) into(ctx context.Context, vmid int) (*backends.Machine, error) {
	u, err := cl.begin(ctx, backends.Making, cl.what, request{http.MethodPost, cl.template.at("clone"), cl.params(vmid)})
	begun := err == nil
	if begun {
		err = cl.await(ctx, cl.what, u)
	}
	switch {
	case err == nil:
		cl.seenAt(vmid, cmp.Or(cl.target(cl.spec), cl.template.node))
		return cl.made(vmid), nil
	case begun && (errors.Is(err, context.Cause(backends.Caller(ctx))) || errors.Is(err, errSlow)):
		// What the clone came to is for the next run to see: a machine that isn't there
		// then is gone.
		return cl.made(vmid), err
	case says(err, textsTaken):
		return nil, cl.hide(ctx, vmid)
	case backends.HasReason(err, backends.ReasonLocked):
		return nil, nil
	case says(err, textsMissing) && !cl.moved:
		// The template was moved since it was read.
		cl.moved = true
		t, findErr := cl.fetchTemplate(ctx, cl.template.vmid)
		if findErr != nil {
			return nil, findErr
		}
		cl.template = t
		return nil, nil
	case isAmbiguous(err):
		return cl.lost(ctx, vmid, err)
	}
	return nil, err
}

// params are those of the clone call.
func (cl *cloning) params(vmid int) url.Values {
	out := url.Values{
		"newid": {strconv.Itoa(vmid)}, "name": {cl.spec.Name},
		"description": {describe(cl.note, vmid, cl.description)},
		"full":        {"0"},
	}
	if cl.account.full {
		out.Set("full", "1")
		if cl.account.storage != "" {
			out.Set("storage", cl.account.storage)
		}
	}
	if node := cl.target(cl.spec); node != "" && node != cl.template.node {
		out.Set("target", node)
	}
	if pool := cmp.Or(cl.spec.Options.String("pool_id"), cl.account.pool); pool != "" {
		out.Set("pool", pool)
	}
	return out
}

// made is the VM as a clone leaves it.
func (cl *cloning) made(vmid int) *backends.Machine {
	m := cl.machine(vmid, cl.spec.Name, cl.note, cl.template.config.tags())
	m.State = backends.StatePending
	return &m
}

// hide remembers a VMID that is taken by something which the token doesn't see, so
// that it isn't tried again. A token whose rights come from a resource pool sees a
// clone only once it is in the pool, which is the last thing that a clone does: as
// long as a clone of its own runs, that may be what has the VMID, and for the same
// key, so it is waited for.
func (cl *cloning) hide(ctx context.Context, vmid int) error {
	for n := 0; ; n++ {
		runs, err := cl.cloneRuns(ctx, cl.template.node)
		if err != nil {
			return err
		}
		all, err := cl.guests.get(ctx, 0)
		if err != nil {
			return err
		}
		if _, seen := all[vmid]; seen {
			return nil
		}
		free, err := cl.isFree(ctx, cl.what, vmid)
		if err != nil || free {
			return err
		}
		if !runs {
			cl.setHidden(vmid)
			return nil
		}
		if err := cl.pause(ctx, n); err != nil {
			return err
		}
	}
}

// cloneRuns tells whether a clone runs on a node that the token may know of: its own
// always are.
func (c *Client) cloneRuns(ctx context.Context, node string) (bool, error) {
	tasks, err := c.fetchTasks(ctx, node)
	if err != nil {
		return false, err
	}
	for _, t := range tasks {
		if u, ok := parseUPID(t.UPID); ok && u.kind == "qmclone" && t.EndTime == "" {
			return true, nil
		}
	}
	return false, nil
}

// lostWindow is how long a clone may take to show whose call got no answer.
const lostWindow = 10 * time.Second

// lost looks what became of a clone whose call, or task, had no clear outcome. When it
// is told to stop, the clone counts as one that is being made.
func (cl *cloning) lost(ctx context.Context, vmid int, cause error) (*backends.Machine, error) {
	ends := time.Now().Add(backends.Scale(lostWindow))
	var anonymously where // where something is that doesn't say whose it is
	for n := 0; ; n++ {
		if err := cl.pause(ctx, n); err != nil {
			if anonymously.vmid != 0 {
				cause = errors.Join(held(cl.what, anonymously, err), cause)
			}
			return cl.made(vmid), errors.Join(cause, err)
		}
		anonymously = where{}
		all, err := cl.guests.get(ctx, 0)
		if err != nil {
			return nil, cause
		}
		row, there := all[vmid]
		if there {
			found, err := cl.inspect(ctx, cl.what, cl.note.marks.Key, row)
			switch {
			case err != nil:
				return nil, cause
			case found.who == anonymous:
				anonymously = row.where()
				continue
			case found.who == ours && found.machine.Marks.Claim == cl.note.marks.Claim:
				return &found.machine, nil
			case found.who == ours:
				return nil, cl.taken(found.machine)
			case found.who == stranger:
				return nil, nil
			}
		}
		if !time.Now().Before(ends) {
			return nil, cause
		}
	}
}
