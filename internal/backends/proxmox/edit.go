// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Edit implements [backends.Editor]. All options of a VM are changed by one call, its
// name, tags and key among them: what can't be changed while it runs has it switched off
// before, so that nothing is left waiting for a start. The resource pool is another call,
// the last one: rights may hang on it.
func (c *Client) Edit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec, off backends.PowerDown) (
	backends.Machine, error) {
	e := &editing{Client: c, what: "Changing " + called(m), m: m, from: from, to: to, off: off}
	form := to
	form.UserData = "" // it is no part of an edit, and the account may have no place for it by now
	if issues := c.CheckForm(form); len(issues) > 0 {
		return m, issues[0]
	}
	for try := 0; ; try++ {
		err := e.once(ctx)
		if err == nil {
			break
		}
		if !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return e.m, err
		}
	}
	e.sweepOld(ctx)
	return e.m, e.enterPool(ctx)
}

// editing is one edit of a VM.
type editing struct {
	*Client
	what     string
	m        backends.Machine // as last seen
	from, to backends.MachineSpec
	off      backends.PowerDown
	// oldKey is the key that the VM had before its name was changed, "" where it wasn't.
	oldKey string
	// hasFiles: there are files with its user data.
	hasFiles bool
}

// once reads the VM and does what is missing but for its resource pool.
func (e *editing) once(ctx context.Context) error {
	v, n, err := e.ownEither(ctx, e.what, e.m, e.to.Marks)
	if err != nil {
		return err
	}
	e.see(v)
	e.hasFiles = len(e.named(v.config)) > 0
	if n.marks.Key != e.to.Marks.Key {
		e.oldKey = n.marks.Key
		if err := e.checkKey(ctx, v.vmid, e.to); err != nil {
			return err
		}
	}
	n.marks = e.to.Marks
	if err := checkNote(n); err != nil {
		return err
	}
	ch := edited(v.config, v.vmid, e.from, e.to, n)
	if ch.network {
		if issue := noCloudInit(v, e.to); issue != nil {
			return issue
		}
	}
	files, err := e.moveFiles(ctx, v, ch)
	if err != nil {
		return err
	}
	if err := e.write(ctx, v, ch); err != nil {
		if len(files) > 0 && !isAmbiguous(err) && ctx.Err() == nil {
			e.sweep(ctx, e.to.Marks.Key, e.named(v.config)...)
		}
		return err
	}
	if len(files) > 0 {
		e.sweep(ctx, e.to.Marks.Key, fileNames(files)...)
	}
	e.setMade(v.vmid)
	e.m.Marks = e.to.Marks
	e.m.Name = e.to.Name
	e.m.Labels = labelsOf(editedTags(v.config.tags(), e.from, e.to))
	return nil
}

// write makes the change of a VM's options.
func (e *editing) write(ctx context.Context, v *vm, ch *change) error {
	waits, err := e.waits(ctx, v)
	if err != nil {
		return err
	}
	if ch.off || waits {
		if err := e.switchOff(ctx); err != nil {
			return err
		}
	}
	options := ch.values()
	if len(options) == 0 {
		return nil
	}
	err = e.setOptions(ctx, e.what, v, options)
	if err == nil && ch.off {
		err = e.stayOff(ctx, v)
	}
	if says(err, textsUnplugged) {
		// What could not be plugged would wait for the next start, unseen.
		e.takeBack(ctx, v, ch)
		out := *backends.AsError(err)
		return out.WithRemedy("The running VM could not take the change, and keeps its network cards as they are. Check the bridge, or set power = \"off\", apply, and set it on again.")
	}
	return err
}

func (e *editing) switchOff(ctx context.Context) error {
	if err := e.off(ctx); err != nil {
		return err
	}
	e.m.State, e.m.Message = backends.StateStopped, ""
	return nil
}

// stayOff switches off once more what was started while it was being changed: a start
// that an earlier run had asked for has the VM's lock, and shows when it is done. What it
// started with is the old, and the change waits for the next start.
func (e *editing) stayOff(ctx context.Context, v *vm) error {
	s, err := e.status(ctx, e.what, v.where)
	if err != nil || s.Status == "stopped" {
		return err
	}
	return e.switchOff(ctx)
}

// takeBack drops what is pending of a change of cards.
func (e *editing) takeBack(ctx context.Context, v *vm, ch *change) {
	var names []string
	for name := range ch.set {
		if strings.HasPrefix(name, "net") {
			names = append(names, name)
		}
	}
	if err := e.tell(ctx, e.what, request{http.MethodPut, v.at("config"), url.Values{"revert": {strings.Join(names, ",")}}}); err != nil {
		backends.Warn(ctx, fmt.Sprintf("%s: the change of network cards that failed is still pending: see the VM's hardware in Proxmox VE. %v", e.what, err))
	}
}

// waits tells whether something of what the edit changes is pending until the VM's next
// start: an edit that was cut off, or someone by hand, left it so. It is asked only where
// a running VM could have such a change.
func (e *editing) waits(ctx context.Context, v *vm) (bool, error) {
	var names []string
	for _, effect := range e.PlanEdit(e.from, e.to) {
		switch effect.Path[len(effect.Path)-1] {
		case "cpu_type":
			names = append(names, "cpu")
		case "network_devices", "network_id":
			for i := range max(len(devicesOf(e.from)), len(devicesOf(e.to))) {
				names = append(names, "net"+strconv.Itoa(i))
			}
		}
	}
	if len(names) == 0 || e.m.State == backends.StateStopped {
		return false, nil
	}
	return e.pending(ctx, e.what, v.where, names)
}

// pending tells whether a change of one of some options waits for the VM's next start.
func (c *Client) pending(ctx context.Context, what string, w where, names []string) (bool, error) {
	type option struct {
		Key     string `json:"key"`
		Pending scalar `json:"pending"`
		Delete  scalar `json:"delete"`
	}
	options, err := call(ctx, c, backends.Idempotent, what, request{http.MethodGet, w.at("pending"), nil},
		func(options []option) bool { return options != nil })
	return slices.ContainsFunc(options, func(o option) bool {
		return (o.Pending != "" || o.Delete.isTrue()) && slices.Contains(names, o.Key)
	}), err
}

// see takes in what was read of the VM; its state and addresses are as they were.
func (e *editing) see(v *vm) {
	seen := e.fromConfig(v, status{Status: "stopped"})
	seen.State, seen.Message, seen.Addresses = e.m.State, e.m.Message, e.m.Addresses
	e.m = seen
}

// ownEither is the VM of a machine that is ours by the key it was last seen with, or by
// the one that an edit gives it: an answer may have been lost.
func (c *Client) ownEither(ctx context.Context, what string, m backends.Machine, marks backends.Marks) (*vm, note, error) {
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return nil, note{}, err
	}
	v, err := c.said(ctx, what, vmid)
	if err != nil {
		return nil, note{}, err
	}
	n, marked := v.config.note(vmid)
	switch known := []string{m.Marks.Key, marks.Key}; {
	case v.row.Type != "qemu", v.config.isTemplate(), !marked, n.marks.Key == "", !slices.Contains(known, n.marks.Key):
		return nil, note{}, notOurs(what, v, m.Marks.Key)
	case n.marks.Claim != m.Marks.Claim && n.marks.Claim != marks.Claim:
		return nil, note{}, claimedMeanwhile(what)
	}
	return v, n, nil
}

// checkKey refuses a key that another VM has: names may be the same in a cluster, keys
// must not.
func (c *Client) checkKey(ctx context.Context, vmid int, to backends.MachineSpec) error {
	found, err := c.FindMachines(ctx, to.Marks.Key)
	if err != nil {
		return err
	}
	for _, other := range found {
		if other.ID != strconv.Itoa(vmid) {
			return &backends.NameTaken{Holder: other.About()}
		}
	}
	return nil
}

// noCloudInit is the refusal of what only cloud-init could tell a guest whose VM has no
// drive for it.
func noCloudInit(v *vm, to backends.MachineSpec) error {
	if drive, _ := v.config.cloudInit(); drive != "" {
		return nil
	}
	name := "ip_config"
	if !to.Options.Has(name) {
		name = "dns"
	}
	return backends.Errorf(backends.InvalidInput, "The VM %d has no cloud-init drive, so that %s.%s has no effect.", v.vmid, attribute, name).
		At(attribute, name).WithRemedy("Add a cloud-init drive to the VM, or leave %s.%s as it was.", attribute, name)
}

// enterPool puts the VM into the resource pool of the wish.
func (e *editing) enterPool(ctx context.Context) error {
	pool := e.to.Options.String("pool_id")
	if pool == "" {
		return nil
	}
	vmid, err := vmidOf(e.what, e.m.ID)
	if err != nil {
		return err
	}
	row, err := e.locate(ctx, e.what, vmid)
	if err != nil || row.Pool == pool {
		return err
	}
	err = e.tell(ctx, e.what, request{http.MethodPut, at("pools"), url.Values{
		"poolid": {pool}, "vms": {e.m.ID}, "allow-move": {"1"},
	}})
	if says(err, textsMember) {
		return nil
	}
	if out := backends.AsError(err); out != nil && poolGone.MatchString(out.Message) {
		gone := *out
		gone.Reason = backends.ReasonInvalid
		return gone.At(attribute, "pool_id").WithRemedy("%s", poolRemedy)
	}
	return err
}
