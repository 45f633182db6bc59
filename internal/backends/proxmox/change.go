// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/http"
	"net/url"
	"slices"

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
	v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
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

// MarkMachine implements [backends.Backend]. To complete a VM is one call, which
// writes all our tags, better-compute among them. Other marks go into the
// description too, which is read before; so does what was there.
func (c *Client) MarkMachine(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	what := "Marking " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return m, err
	}
	n := noteOfMachine(m, marks)
	if err := checkNote(n); err != nil {
		return m, err
	}
	completed := m.Marks
	completed.Complete = true
	node := c.lastAt(vmid)
	if m.Marks.Managed && !m.Marks.Complete && completed == marks && node != "" {
		tags := joinTags(tagsOf(m.Labels), n.tags(vmid))
		err := c.tell(ctx, what,
			request{http.MethodPut, where{node, vmid}.at("config"), url.Values{"tags": {tags}}})
		if err == nil {
			c.setHalfMade(vmid, false)
			m.Marks = marks
			return m, nil
		}
		if !says(err, textsMissing) {
			return m, err
		}
	}
	return c.remark(ctx, what, m, marks)
}

// remark writes marks into tags and description, whatever else is there.
func (c *Client) remark(ctx context.Context, what string, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	for try := 0; ; try++ {
		v, old, err := c.vmOf(ctx, what, m, m.Marks.Key == "")
		if err != nil {
			return m, err
		}
		seen := c.fromConfig(v, status{Status: "stopped"})
		seen.State, seen.Message, seen.Addresses = m.State, m.Message, m.Addresses
		n := old
		n.marks, n.protected = marks, seen.Protected
		options := url.Values{}
		if text := describe(n, v.vmid, v.config.get("description")); marks.Managed && text != v.config.get("description") {
			options.Set("description", text)
		}
		if !marks.Managed {
			options.Set("description", withoutLine(v.config.get("description")))
		}
		tags := foreignTags(v.config.tags())
		if marks.Managed {
			tags = slices.Concat(tags, n.tags(v.vmid))
		}
		if text := joinTags(tags); text != joinTags(v.config.tags()) {
			options.Set("tags", text)
		}
		if len(options) > 0 {
			err = c.setOptions(ctx, what, v, options)
		}
		switch {
		case err == nil:
			c.setHalfMade(v.vmid, marks.Managed && !marks.Complete)
			seen.Marks = marks
			return seen, nil
		case !says(err, textsChanged) && !says(err, textsMissing) || try >= changes:
			return seen, err
		}
	}
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
