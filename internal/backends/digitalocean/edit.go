// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var _ backends.Editor = (*Client)(nil)

// CheckEdit implements [backends.Editor]: names needn't be unique, and nothing else
// needs a call.
func (c *Client) CheckEdit(_ context.Context, _ backends.Machine, _, _ backends.MachineSpec) (
	warnings []string, issues []*backends.Error, err error) {
	return nil, nil, nil
}

// Edit implements [backends.Editor]. Nothing of it needs the Droplet off.
//
// A new name comes with a new key, and no call writes both. So the new key goes on
// first, then the name changes, and the old key goes off with the other old marks at
// the end: wherever this ends the Droplet is found by the new key, and by the old one
// until all is done.
func (c *Client) Edit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec, _ backends.PowerDown) (
	backends.Machine, error) {
	if issues := c.CheckForm(to); len(issues) > 0 {
		return m, issues[0]
	}
	d, err := c.droplet(ctx, "Reading "+called(m), m.ID)
	if err != nil {
		return m, err
	}
	e := &edit{Client: c, droplet: d, from: from, to: to}
	for _, step := range []func(context.Context) error{e.check, e.rename, e.tag, e.addIPv6, e.setBackups, e.mark} {
		if err := step(ctx); err != nil {
			return c.machine(e.droplet), err
		}
	}
	return c.machine(e.droplet), nil
}

// edit is one run of [Client.Edit].
type edit struct {
	*Client
	droplet  *godo.Droplet // as last seen, with the tags that were written since
	from, to backends.MachineSpec
}

func (e *edit) called() string { return called(e.machine(e.droplet)) }

func (e *edit) object() tagged { return tagged{godo.DropletResourceType, e.machine(e.droplet).ID} }

// check makes sure that nobody has claimed the Droplet since its caller looked: the
// marks that come at the end would take it from them.
func (e *edit) check(context.Context) error {
	now, want := e.tags.read(e.droplet.Tags).Claim, e.to.Marks.Claim
	if now == "" || want == "" || now == want {
		return nil
	}
	return backends.Errorf(backends.Conflict, "Someone else has claimed %s meanwhile, so it is not changed.", e.called()).
		WithRemedy("See which other state or run has it.")
}

func (e *edit) rename(ctx context.Context) error {
	if e.to.Name == "" || e.droplet.Name == e.to.Name {
		return nil
	}
	what := "Renaming " + e.called() + " to " + e.to.Name
	if key := e.tagOf(tagKey, e.to.Marks.Key); key != "" && !hasTag(e.droplet.Tags, key) {
		if err := e.tagWith(ctx, what, e.object(), key); err != nil {
			return err
		}
		e.droplet.Tags = append(e.droplet.Tags, key)
	}
	return e.event(ctx, what, map[string]string{"type": "rename", "name": e.to.Name},
		func(d *godo.Droplet) bool { return d.Name == e.to.Name })
}

// event is [Client.event] on the edited Droplet.
func (e *edit) event(ctx context.Context, what string, body any, shows func(*godo.Droplet) bool) error {
	d, err := e.Client.event(ctx, what, e.droplet.ID, body, shows)
	if d != nil {
		e.droplet = d
	}
	return err
}

// tag puts on the tags that are missing, then takes off ours that aren't wished for any
// more, so that what selects by tags never sees the Droplet without any.
func (e *edit) tag(ctx context.Context) error {
	what := "Tagging " + e.called()
	on, off := tagChange(e.droplet.Tags, tagWish{e.from.Labels, e.from.Options}, tagWish{e.to.Labels, e.to.Options})
	for _, tag := range on {
		if err := e.tagWith(ctx, what, e.object(), tag); err != nil {
			return err
		}
		e.droplet.Tags = append(e.droplet.Tags, tag)
	}
	for _, tag := range off {
		if err := e.untag(ctx, what, e.object(), tag); err != nil {
			return err
		}
		e.droplet.Tags = slices.DeleteFunc(e.droplet.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
	}
	return nil
}

func (e *edit) mark(ctx context.Context) error {
	tags := e.droplet.Tags
	err := e.retag(ctx, "Tagging "+e.called(), e.object(), e.tags.read(tags), e.to.Marks,
		func(context.Context) ([]string, error) { return tags, nil })
	if err != nil {
		return err
	}
	isMark := func(tag string) bool { return e.tags.ours(tag) && !e.tags.isProtected([]string{tag}) }
	e.droplet.Tags = append(slices.DeleteFunc(slices.Clone(tags), isMark), e.tags.write(e.to.Marks)...)
	return nil
}
