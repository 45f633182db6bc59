// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// CheckResize implements [backends.Resizer]: an offer is CPUs, memory and, if it says so,
// a boot disk. The VM's node must have the room, since that is where it starts again.
func (c *Client) CheckResize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool) (
	warnings []string, issues []*backends.Error, err error) {
	if _, _, unknown := c.checkSize(to.Offer, nil, ""); unknown != nil {
		issues = append(issues, unknown)
	}
	if len(issues) > 0 || m.Partial {
		return nil, issues, nil // of a VM whose node is down nothing can be read
	}
	what := "Checking the size of " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return nil, nil, err
	}
	v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
	if err != nil || v.row.Type != "qemu" {
		return nil, nil, err
	}
	n, _ := v.config.note(vmid)
	warning, issue := c.checkDisk(v, n, to.Offer, growDisk)
	if warning != "" {
		warnings = append(warnings, warning)
	}
	grown := int64(0)
	if growDisk && issue == nil {
		grown, err = c.grown(v.config, to.Offer)
		if e := backends.AsError(err); e != nil {
			issue = e
		}
	}
	if issue != nil {
		issues = append(issues, issue)
	}
	if issue, err = c.checkRoom(ctx, v, m, to.Offer); err != nil {
		return nil, nil, err
	} else if issue != nil {
		issues = append(issues, issue)
	}
	rights, err := c.lacking(ctx, resizeNeeds(v, to.Offer, grown > 0))
	if err != nil {
		return nil, nil, err
	}
	issues = append(issues, rights...)
	if grown == 0 {
		return warnings, issues, nil
	}
	disk := properties(v.config.get(c.account.disk), "file").get("file")
	full, err := c.checkDiskRoom(ctx, v.node, disk, grown, to.Offer)
	if full != nil {
		issues = append(issues, full)
	}
	return warnings, issues, err
}

// checkDisk holds an offer's boot disk against the one that the VM has. One that was
// larger than its offer from the beginning, since its template's is, stays so.
func (c *Client) checkDisk(v *vm, n note, offer string, growDisk bool) (warning string, issue *backends.Error) {
	s, _ := parseOffer(offer)
	have, there := v.config.diskSize(c.account.disk)
	if s.diskGiB == 0 || !there || have == 0 {
		return "", nil
	}
	was, _ := parseOffer(n.offer)
	byTemplate := n.disk > was.diskGiB<<10 && mib(have) <= n.disk
	switch want := s.diskGiB * gib; {
	case have > want && byTemplate:
		return fmt.Sprintf("The disk of the VM has %s, more than the %d GiB of the offer %s: it is kept, since disks are never shrunk.",
			sizeText(have), s.diskGiB, offer), nil
	case have > want:
		near := size{s.cpus, s.memoryGiB, (have + gib - 1) / gib}
		return "", backends.Errorf(backends.InvalidInput, "The disk of the VM has %s, more than the %d GiB of the offer %s, and disks are never shrunk.",
			sizeText(have), s.diskGiB, offer).At("offer").
			WithRemedy("Use %s, or %s, which says nothing about the disk.", near, size{s.cpus, s.memoryGiB, 0})
	case have < want && growDisk:
		return fmt.Sprintf("The disk of the VM grows from %s to %d GiB, and can't be shrunk again.", sizeText(have), s.diskGiB), nil
	case have < want:
		return fmt.Sprintf("The disk of the VM stays at %s, less than the %d GiB of the offer %s: it grows only with resize_disk = true.",
			sizeText(have), s.diskGiB, offer), nil
	}
	return "", nil
}

// checkRoom holds an offer against what the VM's node has, what the VM itself uses
// being free for it.
func (c *Client) checkRoom(ctx context.Context, v *vm, m backends.Machine, offer string) (*backends.Error, error) {
	nodes, err := c.nodes.get(ctx, recent)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes, func(n nodeRow) bool { return n.Node == v.node })
	if i < 0 {
		return nil, nil
	}
	free := nodes[i]
	if m.State == backends.StateRunning {
		used := max(0, free.Mem.number()-v.config.memoryMiB()<<20)
		free.Mem = scalar(fmt.Sprint(used))
	}
	s, _ := parseOffer(offer)
	if free.has(s) {
		return nil, nil
	}
	var fits []string
	for _, id := range c.listed() {
		if other, ok := parseOffer(id); ok && free.has(other) {
			fits = append(fits, id)
		}
	}
	remedy := "Choose a smaller offer, or make room."
	if len(fits) > 0 {
		remedy = fmt.Sprintf("Use %s, or make room.", backends.Choice(backends.Near(offer, fits, backends.Nearest)))
	}
	return capacity(backends.Errorf(backends.CapacityUnavailable, "There is no room for %s: the node %s, on which the VM is, is not up, or doesn't have %d CPUs and %d GiB of free memory.",
		offer, v.node, s.cpus, s.memoryGiB).At("offer").WithRemedy("%s", remedy)), nil
}

// checkDiskRoom refuses a disk that is larger than all of its storage.
func (c *Client) checkDiskRoom(ctx context.Context, node, volume string, bytes int64, offer string) (*backends.Error, error) {
	rows, err := c.storages.Get(ctx)
	if silent(err) {
		return nil, nil
	}
	for _, row := range rows {
		if row.Node == node && storageOf(volume) == row.Storage {
			if e := tooSmall(row, bytes/gib, offer); e != nil {
				return e, nil
			}
		}
	}
	return nil, err
}

// resizeNeeds are the privileges for a resize.
func resizeNeeds(v *vm, offer string, grows bool) []need {
	options := []string{"tags"}
	out := optionPrivileges(v.aclPath(), append(options, slices.Collect(maps.Keys(sizeOptions(v.config, offer)))...))
	out = append(out, need{[]string{v.aclPath()}, []string{"VM.PowerMgmt"}})
	if grows {
		out = append(out, need{[]string{v.aclPath()}, []string{"VM.Config.Disk"}})
	}
	return out
}

// Resize implements [backends.Resizer]. A disk is grown first, while the VM still runs:
// where there is no room for it, nothing else has been changed. CPUs, memory and the
// offer's mark are one call.
func (c *Client) Resize(ctx context.Context, m backends.Machine, to backends.MachineSpec, growDisk bool, off backends.PowerDown) (
	backends.Machine, error) {
	what := "Resizing " + called(m)
	if _, _, issue := c.checkSize(to.Offer, nil, ""); issue != nil {
		return m, issue
	}
	e := &editing{Client: c, what: what, m: m, to: to, off: off}
	for try := 0; ; try++ {
		err := e.resizeOnce(ctx, growDisk)
		if err == nil || !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return e.m, err
		}
	}
}

func (e *editing) resizeOnce(ctx context.Context, growDisk bool) error {
	v, n, err := e.ownEither(ctx, e.what, e.m, e.m.Marks)
	if err != nil {
		return err
	}
	e.see(v)
	if growDisk {
		if v, err = e.growTo(ctx, v); err != nil {
			return err
		}
	}
	n.offer, n.disk = e.to.Offer, 0
	s, _ := parseOffer(e.to.Offer)
	have, _ := v.config.diskSize(e.account.disk)
	if s.diskGiB > 0 && have > 0 && have != s.diskGiB*gib {
		n.disk = mib(have)
	}
	options := markOptions(v, n)
	sized := sizeOptions(v.config, e.to.Offer)
	if len(sized) > 0 {
		issue, err := e.checkRoom(ctx, v, e.m, e.to.Offer)
		if err != nil {
			return err
		}
		if issue != nil {
			return issue
		}
	}
	waits := false
	if len(sized) == 0 && e.m.State != backends.StateStopped {
		if waits, err = e.pending(ctx, e.what, v.where, sizeNames); err != nil {
			return err
		}
	}
	if len(sized) > 0 || waits {
		if err := e.switchOff(ctx); err != nil {
			return err
		}
	}
	maps.Copy(options, valuesOf(sized))
	if len(options) > 0 {
		if err := e.setOptions(ctx, e.what, v, options); err != nil {
			return err
		}
	}
	if len(sized) > 0 {
		if err := e.stayOff(ctx, v); err != nil {
			return err
		}
	}
	e.m.Offer = e.to.Offer
	return nil
}

// sizeNames are the options that an offer decides.
var sizeNames = []string{"cores", "sockets", "vcpus", "memory", "balloon"}

func valuesOf(options map[string]string) url.Values {
	out := url.Values{}
	for name, value := range options {
		out.Set(name, value)
	}
	return out
}

// growTo grows the boot disk to the offer's, and returns the VM as it is then.
func (e *editing) growTo(ctx context.Context, v *vm) (*vm, error) {
	bytes, err := e.grown(v.config, e.to.Offer)
	if err != nil || bytes == 0 {
		return v, err
	}
	if err := e.resize(ctx, e.what, v.where, bytes); err != nil {
		return nil, err
	}
	grown, _, err := e.ownEither(ctx, e.what, e.m, e.m.Marks)
	return grown, err
}
