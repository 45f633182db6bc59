// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// imageName is what an image of a wish says: a template by its VMID, with or without
// its node, or by its name.
type imageName struct {
	node string
	vmid int
	name string
}

// parseImage reads an image. Digits are a VMID always.
func parseImage(s string) imageName {
	node, id, qualified := strings.Cut(s, "/")
	if !qualified {
		node, id = "", s
	}
	if n, err := strconv.Atoi(id); err == nil && n >= lowestVMID && n <= highestVMID && (!qualified || nodeForm.MatchString(node)) {
		return imageName{node: node, vmid: n}
	}
	return imageName{name: s}
}

// fetchTemplate reads a VM's options; whether it is a template is for its callers to
// see.
func (c *Client) fetchTemplate(ctx context.Context, vmid int) (*vm, error) {
	return c.find(ctx, fmt.Sprintf("Reading the template %d", vmid), vmid, "")
}

// templateRows are the templates of the cluster's list, by node and VMID. A template
// that was just made may be missing for some seconds.
func templateRows(all guests) []vmRow {
	var out []vmRow
	for row := range maps.Values(all) {
		if row.Type == "qemu" && row.Template.isTrue() {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b vmRow) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.vmid(), b.vmid())) })
	return out
}

// template is the template that an image names for a VM on target ("" is the
// template's own node). An issue says why there is none.
func (c *Client) template(ctx context.Context, image, target string) (*vm, *backends.Error, error) {
	name := parseImage(image)
	if name.vmid == 0 {
		vmid, issue, err := c.byName(ctx, name.name, target)
		if issue != nil || err != nil {
			return nil, issue, err
		}
		name.vmid = vmid
	}
	t, err := c.templates.Get(ctx, name.vmid)
	switch {
	case backends.HasCode(err, backends.NotFound):
		return nil, c.noTemplate(ctx, image), nil
	case backends.HasCode(err, backends.AccessDenied):
		return nil, backends.AsError(err).At("image"), nil
	case err != nil:
		return nil, nil, err
	case t.row.Type == "lxc":
		return nil, backends.Errorf(backends.InvalidInput, "%d on the node %s is a container, not a template of a VM.", t.vmid, t.node).
			At("image").WithRemedy("Use a template: %s.", backends.Choice(c.templateNames(ctx, image))), nil
	case !t.config.isTemplate():
		return nil, backends.Errorf(backends.InvalidInput, "%d on the node %s is not a template.", t.vmid, t.node).At("image").
			WithRemedy("Convert it to a template, or use another: %s.", backends.Choice(c.templateNames(ctx, image))), nil
	case name.node != "" && name.node != t.node:
		return nil, backends.Errorf(backends.InvalidInput, "The template %d is on the node %s, not on %s.", t.vmid, t.node, name.node).
			At("image").WithRemedy("Write %s/%d, or %d alone.", t.node, t.vmid, t.vmid), nil
	}
	return t, checkTemplate(t), nil
}

// checkTemplate refuses a template whose clones would look like ours before they
// are: a clone has its template's tags.
func checkTemplate(t *vm) *backends.Error {
	for _, tag := range t.config.tags() {
		if isOurs(tag) {
			return backends.Errorf(backends.InvalidInput, "The template %d has the tag %q, which marks VMs of this provider.", t.vmid, tag).At("image").
				WithRemedy("Remove the template's tags that are %s or begin with %s: it was made from a VM of this provider.", ManagedTag, markPrefix)
		}
	}
	return nil
}

// byName is the VMID of the template with a name: the one on target, or else the
// only one.
func (c *Client) byName(ctx context.Context, name, target string) (int, *backends.Error, error) {
	var found []vmRow
	for _, age := range []time.Duration{recent, 0} { // a list that lacks it may be too old
		all, err := c.guests.get(ctx, age)
		if err != nil {
			return 0, nil, err
		}
		if found = slices.DeleteFunc(templateRows(all), func(r vmRow) bool { return r.Name != name }); len(found) > 0 {
			break
		}
	}
	here := slices.DeleteFunc(slices.Clone(found), func(r vmRow) bool { return r.Node != target })
	switch {
	case len(found) == 0:
		return 0, c.noTemplate(ctx, name), nil
	case len(here) == 1:
		return here[0].vmid(), nil, nil
	case len(found) == 1:
		return found[0].vmid(), nil, nil
	}
	if len(here) > 0 {
		found = here
	}
	var names []string
	for _, r := range found {
		names = append(names, fmt.Sprintf("%s/%d", r.Node, r.vmid()))
	}
	issue := backends.Errorf(backends.InvalidInput, "There are %d templates called %q.", len(found), name).At("image").
		WithRemedy("Use %s, or set the node that the VM is made on: a template there is preferred.", backends.Choice(names))
	return 0, issue, nil
}

func (c *Client) noTemplate(ctx context.Context, image string) *backends.Error {
	return backends.Errorf(backends.InvalidInput, "There is no template %q in the cluster, as far as the account's token sees.", image).At("image").
		WithRemedy("Use %s. The token needs VM.Audit and VM.Clone on a template.", backends.Choice(c.templateNames(ctx, image)))
}

// templateNames are a few templates that are most like an image.
func (c *Client) templateNames(ctx context.Context, image string) []string {
	all, err := c.guests.get(ctx, recent)
	if err != nil {
		return nil
	}
	var names []string
	for _, r := range templateRows(all) {
		if name := cmp.Or(r.Name, strconv.Itoa(r.vmid())); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return backends.Near(image, names, backends.Nearest)
}

// target is the node that a wish's VM is made on; "" is the template's.
func (c *Client) target(spec backends.MachineSpec) string {
	return cmp.Or(spec.Options.String("node"), c.account.node)
}
