// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// agentWindow is how long a new guest's agent is waited for (DESIGN.md §7).
const agentWindow = 30 * time.Second

// textsRunning is the exit status of a start that had nothing to do.
var textsRunning = regexp.MustCompile(`(?i)already running`)

// textsSnippet is in the exit status of a start that could not read a file of ours.
var textsSnippet = regexp.MustCompile(`snippets/better-compute-`)

// FinishMachine implements [backends.Finisher]: options, the boot disk's size, and
// the start. Each step looks at what is there, so that it goes on where a run ended.
// A template with an agent lets it wait for the guest's addresses, for a while.
func (c *Client) FinishMachine(ctx context.Context, m backends.Machine, spec backends.MachineSpec) (backends.Machine, error) {
	what := "Configuring " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return m, err
	}
	files, err := c.filesFor(spec)
	if err != nil {
		return m, err
	}
	v, n, err := c.configure(ctx, what, vmid, m, spec, files)
	if err != nil {
		return m, err
	}
	m = c.machine(vmid, spec.Name, n, slices.Concat(v.config.tags(), specTags(spec)))
	m.State = backends.StatePending
	size, err := c.grown(v.config, spec.Offer)
	if err != nil {
		return m, err
	}
	if size > 0 {
		if err := c.resize(ctx, fmt.Sprintf("Growing the disk of %s", called(m)), v.where, size); err != nil {
			return m, err
		}
	}
	if !spec.Start {
		m.State = backends.StateStopped
		return m, nil
	}
	if err := c.start(ctx, "Starting "+called(m), v.where); err != nil {
		return m, err
	}
	m.State = backends.StateRunning
	if v.config.hasAgent() && len(plannedAddresses(spec)) == 0 {
		m.Addresses, err = c.awaitAgent(ctx, m)
	}
	return m, err
}

// filesFor are the snippets of a wish.
func (c *Client) filesFor(spec backends.MachineSpec) ([]snippet, error) {
	if issues := c.checkUserData(spec); len(issues) > 0 {
		return nil, issues[0]
	}
	return snippetsFor(spec)
}

// changes is how often a change is tried on options that someone else changes at the
// same time.
const changes = 5

// configure gives a half-made VM the options that it lacks, and returns it as it was
// before. Our tags, but for the last, are among them: so lists show whose it is.
func (c *Client) configure(ctx context.Context, what string, vmid int, m backends.Machine, spec backends.MachineSpec,
	files []snippet) (*vm, note, error) {
	for try, waited := 0, 0; ; {
		v, err := c.find(ctx, what, vmid, c.lastAt(vmid))
		if err != nil {
			return nil, note{}, err
		}
		n, marked := v.config.note(vmid)
		switch {
		case v.config.isAnonymous() || v.config.get("lock") == "clone" || v.config.get("lock") == "create":
			// It is still being made.
			if err := c.pause(ctx, waited); err != nil {
				return nil, note{}, held(what, v.where, err)
			}
			waited++
			continue
		case !marked || v.config.isTemplate() || n.marks.Key != m.Marks.Key:
			return nil, note{}, notOurs(what, v, m.Marks.Key)
		case n.marks.Claim != m.Marks.Claim:
			return nil, note{}, claimedMeanwhile(what)
		}
		if n.offer == "" {
			n.offer = spec.Offer
		}
		// A clone has its template's protection, which is no wish for ours: the flag
		// counts once the tag says that we set it.
		n.protected = v.config.isProtected(vmid)
		if err := c.writeSnippets(ctx, files); err != nil {
			return nil, note{}, err
		}
		options := c.desired(v.config, vmid, spec, n, files)
		if len(options) > 0 {
			err = c.setOptions(ctx, what, v, options)
		}
		if err == nil {
			if len(files) > 0 {
				c.sweep(ctx, n.marks.Key, fileNames(files)...) // what an earlier try with other user data left
			}
			return v, n, nil
		}
		if !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return nil, note{}, err
		}
		try++
	}
}

// setOptions changes options, if they still are as they were read. A change whose
// answer was lost makes them others too: so the callers look again.
func (c *Client) setOptions(ctx context.Context, what string, v *vm, options url.Values) error {
	if digest := v.digest(); digest != "" {
		options.Set("digest", digest)
	}
	return c.tell(ctx, what, request{http.MethodPut, v.at("config"), options})
}

func notOurs(what string, v *vm, key string) error {
	name := v.config.get("name")
	if name == "" {
		name = v.row.Name
	}
	e := backends.Errorf(backends.AccessDenied, "%s: the VMID %d is another VM's, %q on the node %s, which is left alone.", what, v.vmid, name, v.node).
		WithRemedy("It carries neither the tag %s nor the description line with the key %s. Plan again: a machine that is gone is planned anew.", ManagedTag, key)
	e.Details = map[string]any{"machine_id": strconv.Itoa(v.vmid)}
	return e
}

// resize grows a disk to a size. Asked for twice, the second time does nothing.
func (c *Client) resize(ctx context.Context, what string, w where, bytes int64) error {
	_, err := c.run(ctx, what, request{http.MethodPut, w.at("resize"), url.Values{
		"disk": {c.account.disk}, "size": {sizeParam(bytes)},
	}}, nil)
	return err
}

// start starts a VM and waits until it runs. One that runs is a success.
func (c *Client) start(ctx context.Context, what string, w where) error {
	u, err := c.run(ctx, what, request{http.MethodPost, w.at("status", "start"), nil}, nil)
	if says(err, textsRunning) {
		return nil
	}
	if says(err, textsSnippet) {
		e := *backends.AsError(err)
		return e.WithRemedy("The node %s can't read the VM's user data. The account's snippets must write into the folder of a storage that this node has: a shared one, or the node's own. The files can be read by their owner and by root: a share that squashes root must map it to their owner.", w.node)
	}
	if err != nil {
		return err
	}
	return c.settled(ctx, what, w, u, "running")
}

// stop pulls a VM's plug and waits until it is off. One that is off is a success.
func (c *Client) stop(ctx context.Context, what string, w where) error {
	u, err := c.run(ctx, what, request{http.MethodPost, w.at("status", "stop"), url.Values{"overrule-shutdown": {"1"}}}, nil)
	if statusOf(err) == http.StatusBadRequest {
		// Before version 8.2 nothing overrules a shutdown that waits for the guest.
		u, err = c.run(ctx, what, request{http.MethodPost, w.at("status", "stop"), nil}, nil)
	}
	if err != nil {
		return err
	}
	return c.settled(ctx, what, w, u, "stopped")
}

// settled waits until a VM that the HA manager keeps has the status that it was asked
// for: that task only asked. The VM may move meanwhile.
func (c *Client) settled(ctx context.Context, what string, w where, u upid, want string) error {
	if !u.byHA() {
		return nil
	}
	ends := time.Now().Add(c.account.timeout) // a bound, not a wait: never scaled
	for n := 0; ; n++ {
		s, err := c.status(ctx, what, w)
		switch {
		case err == nil && s.Status == want:
			return nil
		case says(err, textsMissing):
			row, err := c.locate(ctx, what, w.vmid)
			if err != nil {
				return err
			}
			w = row.where()
		case err != nil && !isNodeDown(err):
			return err
		}
		if time.Now().After(ends) {
			return backends.Errorf(backends.ProviderError, "%s: the HA manager has not brought it to %s within %s.", what, want, c.account.timeout).
				WithRemedy("See the HA manager's log (Datacenter, HA).")
		}
		if err := c.pause(ctx, n); err != nil {
			return err
		}
	}
}

// agentPause is how long a new guest's agent is given before it is first asked; each
// later pause is twice as long. A question to an agent that isn't there yet costs the
// node some seconds.
const agentPause = time.Second

// awaitAgent waits until the guest tells an address, at most for [agentWindow]: an
// agent that doesn't come is no failure. Who asks next gets the same answer.
func (c *Client) awaitAgent(ctx context.Context, m backends.Machine) ([]backends.Address, error) {
	window := agentWindow
	for pause := agentPause; ; pause *= 2 {
		pause = min(pause, window)
		if err := backends.Sleep(backends.Caller(ctx), backends.Scale(pause)); err != nil {
			return nil, err
		}
		window -= pause
		out, err := c.ReadAddresses(ctx, m)
		if err != nil || len(out) > 0 || window <= 0 || c.cannotAsk() {
			if err == nil {
				c.setTold(m.ID, out)
			}
			return out, err
		}
	}
}

// cannotAsk tells whether the token is known not to have the right to ask agents.
func (c *Client) cannotAsk() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warned
}
