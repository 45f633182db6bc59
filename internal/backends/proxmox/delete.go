// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/http"
	"net/url"
	"regexp"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// textsUp is the refusal to destroy what runs: something has started it again.
var textsUp = regexp.MustCompile(`(?i)is running - destroy failed`)

// DeleteMachine implements [backends.Backend]. The VM is stopped, not shut down, and
// destroyed with its own disks only: a disk that merely has its VMID in its name may
// be another cluster's on a shared storage. Only a VM that still is ours is touched,
// and one that is protected is not.
func (c *Client) DeleteMachine(ctx context.Context, m backends.Machine) error {
	what := "Deleting " + called(m)
	v, n, err := c.ownToDestroy(ctx, what, m)
	if err != nil {
		return err
	}
	if v.config["protection"].isTrue() {
		if n.marks.Complete || v.config.isProtected(v.vmid) {
			return protected(what, v)
		}
		if v, err = c.unprotect(ctx, what, m, v); err != nil {
			return err
		}
	}
	if err := c.destroy(ctx, what, m, v, true); err != nil {
		return err
	}
	c.sweepGone(ctx, v, n.marks)
	return nil
}

// protected is the refusal to delete a VM that has the flag, whoever set it.
func protected(what string, v *vm) error {
	e := backends.Errorf(backends.InvalidState, "%s: the VM has deletion protection.", what).
		WithRemedy("Lift the protection, then destroy it: for an instance set deletion_protection = false and apply.")
	if !v.config.isProtected(v.vmid) {
		e = e.WithRemedy("It was set in Proxmox VE, not by an instance's deletion_protection: lift it there (the VM's Options, or \"qm set %d --protection 0\"), then destroy it.", v.vmid)
	}
	e.Reason = backends.ReasonProtected
	return e
}

// unprotect lifts the flag of a VM that is destroyed next, and returns it as it was
// when it still was ours.
func (c *Client) unprotect(ctx context.Context, what string, m backends.Machine, v *vm) (*vm, error) {
	for try := 0; ; try++ {
		err := c.setOptions(ctx, what, v, url.Values{"protection": {"0"}})
		if err == nil || !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return v, err
		}
		if v, _, err = c.ownToDestroy(ctx, what, m); err != nil {
			return nil, err
		}
	}
}

// destroy stops a VM of ours and destroys it, and returns when its VMID is free. purge
// also takes the VMID out of the cluster's jobs (backups, replication) and from the HA
// manager; without it, what the HA manager or a replication has is refused.
func (c *Client) destroy(ctx context.Context, what string, m backends.Machine, v *vm, purge bool) error {
	for try := 0; ; try++ {
		err := c.destroyOnce(ctx, what, m, v, purge)
		if !says(err, textsUp) || try >= changes {
			if err == nil {
				c.setMade(v.vmid)
			}
			return err
		}
		if err := c.pause(ctx, try); err != nil {
			return err
		}
		if v, _, err = c.ownToDestroy(ctx, what, m); err != nil {
			return err
		}
	}
}

func (c *Client) destroyOnce(ctx context.Context, what string, m backends.Machine, v *vm, purge bool) error {
	if v.config.get("lock") != "destroyed" {
		if err := c.stop(ctx, what, v.where); err != nil {
			return err
		}
	}
	_, err := c.run(ctx, what, request{http.MethodDelete, v.at(), url.Values{
		"purge": {flag(purge)}, "destroy-unreferenced-disks": {"0"},
	}}, func(ctx context.Context) (bool, error) {
		// Before it is asked for again: it may be gone, or be another's.
		for n := 0; ; n++ {
			now, err := c.find(ctx, what, v.vmid, "")
			switch {
			case backends.HasCode(err, backends.NotFound):
				return true, nil
			case err != nil:
				return false, err
			case now.row.Type != "qemu":
				return true, nil
			case now.config.isAnonymous():
				if err := c.pause(ctx, n); err != nil {
					return false, err
				}
				continue
			}
			if n, ok := now.config.note(v.vmid); !ok || n.marks.Key != m.Marks.Key {
				return true, nil // a stranger's: ours is gone
			}
			return false, nil
		}
	})
	if says(err, textsMissing) {
		// Gone, or moved to another node: the cluster tells.
		if _, located := c.locate(ctx, what, v.vmid); backends.HasCode(located, backends.NotFound) {
			return nil
		}
	}
	return err
}
