// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/url"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// own is the VM of a machine that is ours by its key: nothing else is changed,
// whatever the VMID says. A VM whose VMID is another's by now is ACCESS_DENIED.
func (c *Client) own(ctx context.Context, what string, m backends.Machine) (*vm, error) {
	v, _, err := c.vmOf(ctx, what, m, false)
	return v, err
}

// vmOf is own, with what is written on the VM. unmarked lets one pass that carries
// nothing of ours, as an import does.
func (c *Client) vmOf(ctx context.Context, what string, m backends.Machine, unmarked bool) (*vm, note, error) {
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return nil, note{}, err
	}
	v, err := c.said(ctx, what, vmid)
	if err != nil {
		return nil, note{}, err
	}
	n, marked := v.config.note(vmid)
	switch {
	case v.row.Type != "qemu" || v.config.isTemplate():
		return nil, note{}, notOurs(what, v, m.Marks.Key)
	case !marked && unmarked:
	case !marked || m.Marks.Key == "" || n.marks.Key != m.Marks.Key:
		return nil, note{}, notOurs(what, v, m.Marks.Key)
	}
	return v, n, nil
}

// said is a VM once it says whose it is: one that is being made or destroyed is waited
// for.
func (c *Client) said(ctx context.Context, what string, vmid int) (*vm, error) {
	for n := 0; ; n++ {
		v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
		if err != nil {
			return nil, err
		}
		if _, marked := v.config.note(vmid); marked || !v.config.isAnonymous() {
			return v, nil
		}
		if err := c.pause(ctx, n); err != nil {
			return nil, held(what, v.where, err)
		}
	}
}

// ownToDestroy is own for one whose disk is to go. Tags alone say too little for that:
// our line must be in the description too, as it is on every VM that we made.
func (c *Client) ownToDestroy(ctx context.Context, what string, m backends.Machine) (*vm, note, error) {
	v, n, err := c.vmOf(ctx, what, m, false)
	if err != nil {
		return nil, note{}, err
	}
	if described, ok := readDescription(v.vmid, v.config.get("description")); !ok || described.marks.Key != n.marks.Key {
		e := backends.Errorf(backends.AccessDenied, "%s: the VM's description lacks the line that says whose it is, so its disk is left alone: the tags alone may be a copy.", what).
			WithRemedy("If it is this machine, put this line into the VM's notes (Proxmox VE, Summary) and run again: %s", leastLine(v.vmid, n.marks.Key))
		e.Details = map[string]any{"machine_id": strconv.Itoa(v.vmid)}
		return nil, note{}, e
	}
	return v, n, nil
}

// MarkMachine implements [backends.Backend]: all our tags are written in one call,
// better-compute among them, and the description where the marks that it repeats
// differ. What is there is read before each try, and changed only as it was read: the
// VMID may be a stranger's by now.
func (c *Client) MarkMachine(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	what := "Marking " + called(m)
	if err := checkNote(noteOfMachine(m, marks)); err != nil {
		return m, err
	}
	for try := 0; ; try++ {
		v, old, err := c.vmOf(ctx, what, m, m.Marks.Key == "")
		if err != nil {
			return m, err
		}
		if marks.Claim == m.Marks.Claim && old.marks.Claim != m.Marks.Claim {
			return m, claimedMeanwhile(what)
		}
		seen, err := c.remark(ctx, what, m, v, old, marks)
		if err == nil || !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return seen, err
		}
	}
}

// remark writes marks on a VM that was just read, whatever else is there.
func (c *Client) remark(ctx context.Context, what string, m backends.Machine, v *vm, n note, marks backends.Marks) (
	backends.Machine, error) {
	seen := c.fromConfig(v, status{Status: "stopped"})
	seen.State, seen.Message, seen.Addresses = m.State, m.Message, m.Addresses
	n.marks, n.protected = marks, seen.Protected
	options := markOptions(v, n)
	if !marks.Managed {
		options = url.Values{"description": {withoutLine(v.config.get("description"))}}
		if text := joinTags(foreignTags(v.config.tags())); text != joinTags(v.config.tags()) {
			options.Set("tags", text)
		}
	}
	if len(options) > 0 {
		if err := c.setOptions(ctx, what, v, options); err != nil {
			return seen, err
		}
	}
	if marks.Managed && !marks.Complete {
		c.setHalfMade(v.vmid, n)
	} else {
		c.setMade(v.vmid)
	}
	seen.Marks = marks
	return seen, nil
}

// markOptions are the options by which a VM gets a note, where they aren't as they are to
// be: what others wrote stays.
func markOptions(v *vm, n note) url.Values {
	out := url.Values{}
	if text := describe(n, v.vmid, v.config.get("description")); text != v.config.get("description") {
		out.Set("description", text)
	}
	if text := joinTags(foreignTags(v.config.tags()), n.tags(v.vmid)); text != joinTags(v.config.tags()) {
		out.Set("tags", text)
	}
	return out
}

// claimedMeanwhile is the refusal to go on with what another run has taken over.
func claimedMeanwhile(what string) error {
	return backends.Errorf(backends.Conflict, "%s: the VM has been claimed by another run meanwhile.", what).
		WithRemedy("If that run isn't yours, choose another name; else let it finish, and plan again.")
}

// Protect implements [backends.Protector] by the VM's own flag. A tag repeats it,
// since no list shows the flag.
func (c *Client) Protect(ctx context.Context, m backends.Machine, protected bool) error {
	what := "Protecting " + called(m)
	if !protected {
		what = "Lifting the protection of " + called(m)
	}
	for try := 0; ; try++ {
		v, n, err := c.vmOf(ctx, what, m, false)
		if err != nil {
			return err
		}
		n.protected = protected
		err = c.setOptions(ctx, what, v, url.Values{
			"protection": {flag(protected)}, "tags": {joinTags(foreignTags(v.config.tags()), n.tags(v.vmid))},
		})
		if err == nil || !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return err
		}
	}
}
