// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// pause waits before something is looked at once more: n counts from 0.
func (c *Client) pause(ctx context.Context, n int) error {
	d := min(c.account.poll*time.Duration(2+n)/4, longestTaskPoll*c.account.poll)
	return backends.Sleep(backends.Caller(ctx), backends.Scale(d))
}

// MakeMachine implements [backends.Backend]: it clones the template into the first
// free slot of the key, with our line in the description, and waits for the clone. A
// slot that holds a VM with the key is a [backends.NameTaken]; its marks are to be
// had from GetMachine. What else there is to do, FinishMachine does.
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
	cl := &cloning{Client: c, spec: spec, template: template, note: noteFor(spec, template), what: "Creating VM " + spec.Name}
	if err := checkNote(cl.note); err != nil {
		return backends.Machine{}, err
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
		if made != nil || err != nil {
			return deref(made), err
		}
		if err := c.pause(ctx, n); err != nil {
			return backends.Machine{}, err
		}
	}
}

func deref(m *backends.Machine) backends.Machine {
	if m == nil {
		return backends.Machine{}
	}
	return *m
}

// cloning is the making of one VM.
type cloning struct {
	*Client
	spec     backends.MachineSpec
	template *vm
	note     note
	what     string
	moved    bool // the template was looked for anew
}

// taken says that a VM with the key is there. It is remembered, so that lists show it
// although it may have no tags yet.
func (cl *cloning) taken(holder backends.Machine) error {
	if vmid, err := strconv.Atoi(holder.ID); err == nil && !holder.Marks.Complete {
		cl.setHalfMade(vmid, true)
	}
	return &backends.NameTaken{Holder: holder.About()}
}

// into clones the template into a VMID. A nil machine without an error asks for
// another look at the slots: the VMID is taken by now, or a lock could not be had.
func (cl *cloning) into(ctx context.Context, vmid int) (*backends.Machine, error) {
	u, err := cl.begin(ctx, backends.Making, cl.what, request{http.MethodPost, cl.template.at("clone"), cl.params(vmid)})
	if err == nil {
		err = cl.await(ctx, cl.what, u)
	}
	switch {
	case err == nil:
		cl.seenAt(vmid, cmp.Or(cl.target(cl.spec), cl.template.node))
		return cl.made(vmid), nil
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
		"description": {describe(cl.note, vmid, cl.template.config.get("description"))},
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
		runs, err := cl.cloneRuns(ctx)
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

// cloneRuns tells whether a clone runs on the template's node that the token may know
// of: its own always are.
func (cl *cloning) cloneRuns(ctx context.Context) (bool, error) {
	tasks, err := cl.fetchTasks(ctx, cl.template.node)
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

// lost looks what became of a clone whose call, or task, had no clear outcome.
func (cl *cloning) lost(ctx context.Context, vmid int, cause error) (*backends.Machine, error) {
	ends := time.Now().Add(backends.Scale(lostWindow))
	for n := 0; ; n++ {
		if err := cl.pause(ctx, n); err != nil {
			return nil, cause
		}
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

// who is whose a VMID is, to one key.
type who int

const (
	nobody    who = iota
	ours          // a VM with the key has it
	anonymous     // something that is being made or destroyed has it, and doesn't say whose it is
	stranger
)

type found struct {
	who     who
	machine backends.Machine // with ours
}

// inspect tells whose a VMID is that the cluster's list shows. What the tags don't
// tell, the options do.
func (c *Client) inspect(ctx context.Context, what, key string, row vmRow) (found, error) {
	tagged, isTagged := readTags(row.vmid(), splitTags(row.Tags))
	if row.Type != "qemu" || isTagged && tagged.marks.Key != key {
		return found{who: stranger}, nil
	}
	config, err := c.config(ctx, what, row.where())
	switch {
	case says(err, textsMissing):
		return found{who: nobody}, nil // gone since, or moved: the list will tell
	case statusOf(err) == http.StatusForbidden:
		return found{who: stranger}, nil
	case isNodeDown(err) && isTagged:
		return found{ours, c.partial(row, tagged)}, nil
	case err != nil:
		return found{}, err
	}
	n, marked := config.note(row.vmid())
	switch {
	case config.isTemplate():
		return found{who: stranger}, nil
	case marked && n.marks.Key == key:
		c.seenAt(row.vmid(), row.Node)
		m := c.fromConfig(&vm{where: row.where(), row: row, config: config}, status{Status: "stopped"})
		return found{ours, m}, nil
	case !marked && config.isAnonymous():
		return found{who: anonymous}, nil
	}
	return found{who: stranger}, nil
}

// slot is the first free slot of the key, or the VM that has the key already,
// wherever it is: all slots are looked at, since a stranger's VM that kept a slot
// when ours was made may be gone. A slot whose holder doesn't say yet whose it is,
// is waited for: it may be ours, and the key would get two VMs.
func (cl *cloning) slot(ctx context.Context) (free int, holder *backends.Machine, err error) {
	key, vmID := cl.note.marks.Key, int(cl.spec.Options.Int("vm_id"))
	candidates := cl.slotsOf(key, vmID)
	age := recent
	for n := 0; ; n++ {
		all, err := cl.guests.get(ctx, age)
		if err != nil {
			return 0, nil, err
		}
		look := append(slices.Clone(candidates), tagged(all, key)...)
		look = slices.DeleteFunc(look, func(vmid int) bool { _, there := all[vmid]; return !there })
		if age > 0 && len(look) > 0 {
			age = 0 // what is there decides, so it is looked at as it is now
			continue
		}
		slices.Sort(look)
		blocked, again := map[int]bool{}, false
		for _, vmid := range slices.Compact(look) {
			found, err := cl.inspect(ctx, cl.what, key, all[vmid])
			switch {
			case err != nil:
				return 0, nil, err
			case found.who == ours:
				return 0, &found.machine, nil
			case found.who == stranger:
				blocked[vmid] = true
			default: // anonymous, or gone while we looked
				again = true
			}
		}
		if again {
			if err := cl.pause(ctx, n); err != nil {
				return 0, nil, err
			}
			continue
		}
		for _, vmid := range candidates {
			if !blocked[vmid] && !cl.isHidden(vmid) {
				return vmid, nil, nil
			}
		}
		return 0, nil, cl.noSlot(vmID, all)
	}
}

func (c *Client) setHidden(vmid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden[vmid] = true
}

func (c *Client) isHidden(vmid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hidden[vmid]
}

// tagged are the VMIDs whose tags hold a key.
func tagged(all guests, key string) []int {
	var out []int
	for vmid, row := range all {
		if n, ok := readTags(vmid, splitTags(row.Tags)); ok && n.marks.Key == key {
			out = append(out, vmid)
		}
	}
	return out
}

func (cl *cloning) noSlot(vmID int, all guests) error {
	if vmID != 0 {
		holder := "something that the account's token doesn't see"
		if row, ok := all[vmID]; ok {
			holder = fmt.Sprintf("another VM or container, %q on the node %s", row.Name, row.Node)
		}
		e := backends.Errorf(backends.Conflict, "The VMID %d is taken by %s.", vmID, holder).At(attribute, "vm_id").
			WithRemedy("Choose another vm_id, or leave it out.")
		e.Details = map[string]any{"machine_id": strconv.Itoa(vmID)}
		return e
	}
	e := backends.Errorf(backends.CapacityUnavailable, "All VMIDs that the name %q may have between %d and %d are taken by other VMs.",
		cl.spec.Name, cl.account.vmidMin, cl.account.vmidMax).
		WithRemedy("Give the account a larger range of its own (vmid_min, vmid_max), or set proxmox.vm_id.")
	e.Reason = backends.ReasonCapacity
	return e
}
