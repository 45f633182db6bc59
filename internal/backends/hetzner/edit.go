// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"maps"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

var _ backends.Editor = (*Client)(nil)

// edit is one edit of a server while it is made.
type edit struct {
	*Client
	from, to backends.MachineSpec
	powerOff backends.PowerDown
	// server is the server as last seen.
	server *hcloud.Server
	// stale: something was changed since.
	stale bool
	isOff bool
}

// Edit implements [backends.Editor]. Name, labels and marks are one PUT, which comes
// first: it can be refused for the name, and then nothing has been changed. The rest are
// actions, each of which is left out when the server shows that it is done.
//
// Networks come before public addresses, so that a server is not left without any
// interface longer than it must be, and firewalls after those, since a server without a
// public interface takes none; a server that was switched off for an address gets its
// firewalls before it is switched on again.
func (c *Client) Edit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec, off backends.PowerDown) (
	backends.Machine, error) {
	s, err := c.server(ctx, m.ID)
	if err != nil {
		return m, err
	}
	e := &edit{Client: c, from: from, to: to, powerOff: off, server: s}
	for _, step := range []func(context.Context) error{
		e.describe, e.settle, e.networks, e.addresses, e.placement, e.firewalls, e.backups,
	} {
		if err := step(ctx); err != nil {
			return c.machine(e.server), err
		}
	}
	if e.stale {
		if err := e.look(ctx); err != nil {
			return c.machine(e.server), err
		}
	}
	return c.machine(e.server), nil
}

// look reads the server again.
func (e *edit) look(ctx context.Context) error {
	s, err := e.Client.server(ctx, fmt.Sprint(e.server.ID))
	if err == nil {
		e.server, e.stale = s, false
	}
	return err
}

// called is the server as messages name it.
func (e *edit) called() string { return called(e.machine(e.server)) }

// off switches the server off, once.
func (e *edit) off(ctx context.Context) error {
	if e.isOff {
		return nil
	}
	err := e.powerOff(ctx)
	e.isOff = err == nil
	return err
}

// describe writes name, labels and marks, if one of them is another. The API replaces
// all labels, so those of others are sent along.
func (e *edit) describe(ctx context.Context) error {
	s := e.server
	labels := e.marks.write(changedLabels(e.marks.foreign(s.Labels), e.from.Labels, e.to.Labels), e.to.Marks)
	var opts hcloud.ServerUpdateOpts
	if !maps.Equal(labels, s.Labels) {
		opts.Labels = labels
	}
	what := "Labelling " + e.called()
	if e.to.Name != s.Name && e.to.Name != "" {
		opts.Name, what = e.to.Name, "Renaming "+e.called()+" to "+e.to.Name
	}
	if opts.Name == "" && opts.Labels == nil {
		return nil
	}
	var window releaseWindow
	return backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		updated, answer, err := e.api.Server.Update(ctx, &hcloud.Server{ID: s.ID}, opts)
		if err == nil && succeeded(answer) && updated.ID != s.ID {
			err = errNoObject
		}
		err = failure(ctx, what, answer, err)
		switch {
		case err == nil:
			e.server = updated
			return nil
		case opts.Name != "" && isNameTaken(err):
			return nameTaken(ctx, "server", err, window.end(), func(ctx context.Context) (*backends.About, error) {
				return e.byName(ctx, opts.Name)
			})
		}
		return err
	})
}

// changedLabels are labels with those of one wish made those of another: what the first
// had and the second hasn't goes, and what is in neither stays. Without labels in the
// second all stay.
func changedLabels(labels, from, to map[string]string) map[string]string {
	if to == nil {
		return labels
	}
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	for key := range from {
		delete(out, key)
	}
	maps.Copy(out, to)
	return out
}

// settle waits for an action that works on the server, such as one of an edit that was
// interrupted: until it has ended, the server doesn't show what it will be. A wish that
// names nothing but name and labels has no need of that.
func (e *edit) settle(ctx context.Context) error {
	if !e.saysMore() {
		return nil
	}
	return e.unlocked(ctx)
}

// unlocked waits until no action works on the server.
func (e *edit) unlocked(ctx context.Context) error {
	for poll := firstPoll; e.server.Locked; poll = min(poll*2, longestPoll) {
		if err := backends.Sleep(ctx, backends.Scale(poll)); err != nil {
			return err
		}
		if err := e.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// saysMore tells whether the wish says something about what actions change.
func (e *edit) saysMore() bool {
	for _, f := range machineFields() {
		if editTable()[f.Name].takes != backends.NextCreation && e.to.Options.Has(f.Name) {
			return true
		}
	}
	return e.to.Network != ""
}

// do starts an action and waits for it. Whatever went wrong, what the server shows then
// decides: an earlier try whose answer was lost may have done it. An object that the
// action names and that isn't there is no machine that is gone: noun and id say which it
// is; noun may be empty.
func (e *edit) do(ctx context.Context, what, noun string, id int64,
	call func(context.Context) (*hcloud.Action, *hcloud.Response, error), done func() bool) error {
	e.stale = true
	err := e.act(ctx, what, call, waitForEnd)
	if err == nil || ctx.Err() != nil {
		return err
	}
	readErr := e.look(ctx)
	switch {
	case backends.HasCode(readErr, backends.NotFound):
		return readErr
	case readErr == nil && done():
		return nil
	case backends.HasCode(err, backends.NotFound):
		return missingObject(err, noun, id)
	}
	return err
}

// missingObject is the refusal of an action for something that it names.
func missingObject(err error, noun string, id int64) error {
	e := plain(err)
	e.Code, e.Reason = backends.ProviderError, backends.ReasonInvalid
	if noun != "" {
		e.Remedy = fmt.Sprintf("Check that the %s %d is there, and of the account's project.", noun, id)
	}
	return e
}
