// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Reinstall implements [backends.Reinstaller]: the VM is destroyed, and the new
// template cloned into its VMID. All that the VM keeps is read before: key and other
// marks, name, CPUs and memory, the disk's size, its cards with their MAC addresses,
// what cloud-init is told, the resource pool, tags, description and protection.
// A run that ends in between leaves a half-made VM, or none: the next one finishes
// or makes it.
func (c *Client) Reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	return c.reinstall(ctx, m, spec, nil)
}

// ReinstallWithUserData implements [backends.UserDataReinstaller]: the guest gets
// the wish's user data and keys.
func (w *withSnippets) ReinstallWithUserData(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	files, err := w.filesFor(spec)
	if err != nil {
		return err
	}
	if files == nil {
		files = []snippet{}
	}
	return w.reinstall(ctx, m, spec, files)
}

// kept matches the options that a reinstalled VM keeps as they were.
var kept = regexp.MustCompile(`^(?:cores|sockets|vcpus|cpulimit|cpuunits|memory|balloon|net\d+|ipconfig\d+|` +
	`nameserver|searchdomain|ciuser|sshkeys|cicustom|onboot|startup|protection)$`)

// reinstall does it. files are the snippets of new user data, nil to keep the old.
func (c *Client) reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec, files []snippet) error {
	what := "Reinstalling " + called(m)
	v, n, err := c.vmOf(ctx, what, m, false)
	if err != nil {
		return err
	}
	if v.row.Pool == "" {
		// The hint that found it doesn't say its pool.
		if v.row, err = c.locate(ctx, what, v.vmid); err != nil {
			return err
		}
	}
	s, err := c.status(ctx, what, v.where)
	if err != nil {
		return err
	}
	template, issue, err := c.template(ctx, spec.Image, v.node)
	if err != nil {
		return err
	}
	if issue != nil {
		return issue
	}
	if _, ok := template.config.diskSize(c.account.disk); !ok {
		return c.noDisk(template)
	}
	if len(files) > 0 {
		if err := c.writeSnippets(ctx, files); err != nil {
			return err
		}
	}
	if v.config["protection"].isTrue() {
		// It protects from deletion, which this is not: the machine stays what it is.
		if err := c.tell(ctx, what,
			request{http.MethodPut, v.at("config"), url.Values{"protection": {"0"}}}); err != nil {
			return err
		}
	}
	if err := c.destroy(ctx, what, m, v); err != nil {
		return err
	}
	if err := c.cloneAgain(ctx, what, v, n, template); err != nil {
		return err
	}
	if files != nil {
		c.removeSnippets(ctx, v.config.get("cicustom"), files...)
	}
	again := again{what: what, old: v, note: n, template: template, spec: spec, files: files, start: spec.Start || s.Status == "running"}
	return c.restore(ctx, again)
}

// cloneAgain clones a template into the VMID of a VM that was just destroyed. A VMID
// that someone else took meanwhile isn't probed past.
func (c *Client) cloneAgain(ctx context.Context, what string, v *vm, n note, template *vm) error {
	half := n
	half.marks.Complete = false
	half.image = strconv.Itoa(template.vmid)
	cl := &cloning{Client: c, what: what, note: half, template: template}
	cl.spec = backends.MachineSpec{Name: v.config.get("name"), Options: backends.Values{"node": v.node, "pool_id": v.row.Pool}}
	c.setHalfMade(v.vmid, true)
	for try := 0; ; try++ {
		made, err := cl.into(ctx, v.vmid)
		if made != nil || err != nil {
			return err
		}
		all, err := c.guests.get(ctx, 0)
		if err != nil {
			return err
		}
		if row, there := all[v.vmid]; there {
			found, err := c.inspect(ctx, what, n.marks.Key, row)
			switch {
			case err != nil:
				return err
			case found.who == ours && found.machine.Marks.Claim == n.marks.Claim:
				return nil
			case found.who == ours || found.who == stranger:
				return backends.Errorf(backends.Conflict, "%s: another VM took the VMID %d after the old one was destroyed.", what, v.vmid).
					WithRemedy("The machine is gone: plan again, which makes it anew.")
			}
		} else if c.isHidden(v.vmid) {
			return backends.Errorf(backends.Conflict, "%s: something that the account's token doesn't see took the VMID %d.", what, v.vmid).
				WithRemedy("The machine is gone: plan again, which makes it anew.")
		}
		if err := c.pause(ctx, try); err != nil {
			return err
		}
	}
}

// again is a VM that is made again, in the place of an old one.
type again struct {
	what     string
	old      *vm
	note     note // what is written on the old one
	template *vm
	spec     backends.MachineSpec
	files    []snippet // nil keeps the old user data
	start    bool
}

// restore gives a fresh clone what the old VM had: its options, then its disk's size,
// and the tag that comes last when all is done.
func (c *Client) restore(ctx context.Context, a again) error {
	what, old, n, template, files := a.what, a.old, a.note, a.template, a.files
	v, err := c.unlocked(ctx, what, old)
	if err != nil {
		return err
	}
	options := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(old.config)) {
		if value := old.config.get(name); kept.MatchString(name) && v.config.get(name) != value {
			options.Set(name, value)
		}
	}
	if old.config["sockets"] == "" && v.config["sockets"].number() > 1 {
		options.Set("sockets", "1")
	}
	n.image = strconv.Itoa(template.vmid)
	complete := n.marks.Complete
	n.marks.Complete = false
	options.Set("description", describe(n, v.vmid, old.config.get("description")))
	options.Set("tags", joinTags(foreignTags(old.config.tags()), n.tags(v.vmid)))
	if drive, storage := old.config.cloudInit(); drive != "" {
		if has, _ := v.config.cloudInit(); has == "" {
			options.Set(drive, storage+":cloudinit")
		}
	}
	if files != nil {
		userDataOptions(options, v.config, c.custom(files), a.spec)
	}
	if err := c.tell(ctx, what, request{http.MethodPut, v.at("config"), options}); err != nil {
		return err
	}
	had, _ := old.config.diskSize(c.account.disk)
	if has, ok := v.config.diskSize(c.account.disk); ok && has < had {
		if err := c.resize(ctx, what, v.where, had); err != nil {
			return err
		}
	}
	if a.start {
		if err := c.start(ctx, what, v.where); err != nil {
			return err
		}
	}
	if !complete {
		return nil
	}
	n.marks.Complete = true
	err = c.tell(ctx, what, request{http.MethodPut, v.at("config"),
		url.Values{"tags": {joinTags(foreignTags(old.config.tags()), n.tags(v.vmid))}}})
	if err == nil {
		c.setHalfMade(v.vmid, false)
	}
	return err
}

// userDataOptions are the options of new user data instead of the old: files, or
// keys alone.
func userDataOptions(options url.Values, has vmConfig, custom string, spec backends.MachineSpec) {
	var drop []string
	replace := func(name, value string) {
		options.Del(name)
		switch {
		case value != "":
			options.Set(name, value)
		case has.get(name) != "":
			drop = append(drop, name)
		}
	}
	replace("cicustom", custom)
	keys := ""
	if len(spec.SSHKeys) > 0 && custom == "" {
		keys = encodeKeys(spec.SSHKeys)
	}
	replace("sshkeys", keys)
	if len(drop) > 0 {
		options.Set("delete", strings.Join(drop, ","))
	}
}

// unlocked is a fresh clone once nothing works on it any more.
func (c *Client) unlocked(ctx context.Context, what string, old *vm) (*vm, error) {
	for n := 0; ; n++ {
		v, err := c.find(ctx, what, old.vmid, old.node)
		if err != nil {
			return nil, err
		}
		if v.config.get("lock") == "" {
			return v, nil
		}
		if err := c.pause(ctx, n); err != nil {
			return nil, err
		}
	}
}
