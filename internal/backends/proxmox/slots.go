// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// maxSlots bounds how many VMIDs a key may have (the specification's Proxmox
// section).
const maxSlots = 64

// slots are the VMIDs of a key, in the order in which they are tried: the first by
// the SHA-256 of the key, the others behind it, around the end of the range.
func slots(key string, low, high int) []int {
	size := uint64(high - low + 1) //nolint:gosec // high is not below low
	sum := sha256.Sum256([]byte(key))
	first := binary.BigEndian.Uint64(sum[:8]) % size
	out := make([]int, min(size, maxSlots))
	for i := range out {
		out[i] = low + int((first+uint64(i))%size) //nolint:gosec // below 10^9
	}
	return out
}

// slotsOf are the VMIDs that a machine may have: the one that is asked for, or those
// of its key.
func (c *Client) slotsOf(key string, vmID int) []int {
	if vmID != 0 {
		return []int{vmID}
	}
	return slots(key, c.account.vmidMin, c.account.vmidMax)
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
	machine backends.Machine // with ours; the name alone of a stranger's without marks
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
	case !marked:
		return found{stranger, backends.Machine{Name: config.get("name")}}, nil
	}
	return found{who: stranger}, nil
}

// slot is the first free slot of the key, or the VM that has the key already,
// wherever it is: all slots are looked at, since a stranger's VM that kept a slot
// when ours was made may be gone, and since vm_id may be new. A slot whose holder
// doesn't say yet whose it is, is waited for: it may be ours, and the key would get
// two VMs.
func (cl *cloning) slot(ctx context.Context) (free int, holder *backends.Machine, err error) {
	key, vmID := cl.note.marks.Key, int(cl.spec.Options.Int("vm_id"))
	candidates := cl.slotsOf(key, vmID)
	age := recent
	if vmID != 0 {
		age = 0 // no clone into the key's own slots would fail for what an old list lacks
	}
	for n := 0; ; n++ {
		all, err := cl.guests.get(ctx, age)
		if err != nil {
			return 0, nil, err
		}
		look := slices.Concat(candidates, cl.slotsOf(key, 0), tagged(all, key))
		look = slices.DeleteFunc(look, func(vmid int) bool { _, there := all[vmid]; return !there })
		if age > 0 && len(look) > 0 {
			age = 0 // what is there decides, so it is looked at as it is now
			continue
		}
		slices.Sort(look)
		blocked, waitsFor := map[int]bool{}, 0
		for _, vmid := range slices.Compact(look) {
			found, err := cl.inspect(ctx, cl.what, key, all[vmid])
			switch {
			case err != nil:
				return 0, nil, err
			case found.who == ours:
				return 0, &found.machine, nil
			case found.who == stranger:
				if vmID == 0 && vmid == candidates[0] && found.machine.Name == cl.spec.Name {
					return 0, nil, unmarked(all[vmid].where(), cl.spec.Name)
				}
				blocked[vmid] = true
			default: // anonymous, or gone while we looked
				waitsFor = vmid
			}
		}
		if waitsFor != 0 {
			if err := cl.pause(ctx, n); err != nil {
				return 0, nil, held(cl.what, all[waitsFor].where(), err)
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

// held is the error of a wait for a VM that something works on, which cause ended. A
// node that crashes leaves its locks behind, and no token may remove them.
func held(what string, w where, cause error) error {
	e := backends.Errorf(backends.ProviderError, "%s: the VMID %d on the node %s is locked by a task that makes or destroys its VM.", what, w.vmid, w.node).
		WithRemedy("See the cluster's task list. If no task works on the VM, its node crashed meanwhile: on the node, \"qm unlock %d\" removes the lock, and \"qm destroy %d\" what is left of the VM. Then apply again.",
			w.vmid, w.vmid)
	e.Reason, e.Details = backends.ReasonLocked, map[string]any{"machine_id": strconv.Itoa(w.vmid)}
	return errors.Join(e, cause)
}

// passed looks once more at the slots before a clone's that had something which the
// token didn't see: a clone for the same key, by another token whose rights come from
// a resource pool, is in the pool by now. Of the two, the one just made goes. What was
// made is returned unless it is gone.
func (cl *cloning) passed(ctx context.Context, made backends.Machine) (backends.Machine, error) {
	candidates := cl.slotsOf(cl.note.marks.Key, int(cl.spec.Options.Int("vm_id")))
	its := max(0, slices.IndexFunc(candidates, func(vmid int) bool { return strconv.Itoa(vmid) == made.ID }))
	before := slices.DeleteFunc(candidates[:its], func(vmid int) bool { return !cl.isHidden(vmid) })
	if len(before) == 0 {
		return made, nil
	}
	all, err := cl.guests.get(ctx, 0)
	if err != nil {
		return made, err
	}
	for _, vmid := range before {
		row, there := all[vmid]
		if !there {
			continue
		}
		found, err := cl.inspect(ctx, cl.what, cl.note.marks.Key, row)
		if err != nil {
			return made, err
		}
		if found.who == ours {
			if err := cl.DeleteMachine(ctx, made); err != nil && !backends.HasCode(err, backends.NotFound) {
				return made, err
			}
			return backends.Machine{}, cl.taken(found.machine)
		}
	}
	return made, nil
}

// unmarked refuses to make a VM where the very VMID that its name leads to has a VM of
// that name without marks: it was ours, and would be there twice, with its addresses.
func unmarked(w where, name string) error {
	e := backends.Errorf(backends.AccessDenied, "The marks are gone: the VM %d on the node %s has the VMID and the name of %q, and carries none of our tags any more.", w.vmid, w.node, name).
		WithRemedy("If it is this resource's, import it by its VMID, which marks it again. If it isn't, give it another name, or choose another one.")
	e.Details = map[string]any{"machine_id": strconv.Itoa(w.vmid)}
	return e
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
		if row, ok := all[vmID]; ok {
			return vmidTaken(vmID, row)
		}
		e := backends.Errorf(backends.Conflict, "The VMID %d is taken by something that the account's token doesn't see.", vmID).
			At(attribute, "vm_id").WithRemedy("Choose another vm_id, or leave it out.")
		e.Details = map[string]any{"machine_id": strconv.Itoa(vmID)}
		return e
	}
	e := backends.Errorf(backends.CapacityUnavailable, "All VMIDs that the name %q may have between %d and %d are taken by other VMs.",
		cl.spec.Name, cl.account.vmidMin, cl.account.vmidMax).
		WithRemedy("Give the account a larger range of its own (vmid_min, vmid_max), or set proxmox.vm_id.")
	e.Reason = backends.ReasonCapacity
	return e
}
