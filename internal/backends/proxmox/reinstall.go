// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
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
// or makes it, with what is in the configuration, and what was only on the VM (its MAC
// addresses, tags set by hand) is lost.
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
var kept = regexp.MustCompile(`^(?:cores|sockets|vcpus|cpu|cpulimit|cpuunits|memory|balloon|net\d+|ipconfig\d+|` +
	`nameserver|searchdomain|ciuser|sshkeys|cicustom|onboot|startup|protection)$`)

// textsNamed are the refusals to destroy what the HA manager or a replication job has.
var textsNamed = regexp.MustCompile(`(?i)purge parameter not set|replication job`)

// reinstall does it. files are the snippets of new user data, nil to keep the old.
func (c *Client) reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec, files []snippet) error {
	what := "Reinstalling " + called(m)
	v, n, err := c.ownToDestroy(ctx, what, m)
	if err != nil {
		return err
	}
	if v.row.Pool == "" {
		// The hint that found it doesn't say its pool.
		if v.row, err = c.locate(ctx, what, v.vmid); err != nil {
			return err
		}
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
	cl := c.cloningAgain(what, v, n, template)
	if err := cl.rehearse(ctx, v.vmid); err != nil {
		return err
	}
	if err := c.writeSnippets(ctx, files); err != nil {
		return err
	}
	if err := c.makeRoom(ctx, what, m, v); err != nil {
		if len(files) > 0 {
			c.sweep(ctx, n.marks.Key, c.named(v.config)...)
		}
		return err
	}
	if err := cl.again(ctx, v.vmid); err != nil {
		return err
	}
	if err := c.restore(ctx, again{what: what, old: v, note: n, template: template, spec: spec, files: files}); err != nil {
		return err
	}
	if files != nil {
		c.sweep(ctx, n.marks.Key, fileNames(files)...)
	}
	return nil
}

// makeRoom destroys the VM whose VMID the new one gets.
func (c *Client) makeRoom(ctx context.Context, what string, m backends.Machine, v *vm) (err error) {
	if v.config["protection"].isTrue() {
		// It protects from deletion, which this is not: the machine stays what it is.
		if v, err = c.unprotect(ctx, what, m, v); err != nil {
			return err
		}
	}
	// The cluster's backup jobs name the VMID, and so go on with the new VM.
	err = c.destroy(ctx, what, m, v, false)
	if says(err, textsNamed) {
		backends.Warn(ctx, what+": the HA manager and replication jobs forget the VM, since Proxmox VE destroys none that they have. Add it to them again.")
		err = c.destroy(ctx, what, m, v, true)
	}
	return err
}

// cloningAgain is the making of a VM in the place of v.
func (c *Client) cloningAgain(what string, v *vm, n note, template *vm) *cloning {
	n.marks.Complete = false
	n.image, n.disk = strconv.Itoa(template.vmid), c.keptAgain(n, template.config)
	return &cloning{
		Client: c, what: what, note: n, template: template, description: v.config.get("description"),
		spec: backends.MachineSpec{Name: v.config.get("name"), Options: backends.Values{"node": v.node, "pool_id": v.row.Pool}},
	}
}

// rehearse asks for the clone while the old VM still has the VMID: that is the last
// thing that Proxmox VE looks at. Whatever else it would refuse (a right that is
// missing, a template on another node's storage) it so refuses before anything is
// destroyed. Where the VM is on another node than the template, a task says so.
func (cl *cloning) rehearse(ctx context.Context, vmid int) error {
	for n := 0; ; n++ {
		u, err := cl.begin(ctx, backends.Idempotent, cl.what, request{http.MethodPost, cl.template.at("clone"), cl.params(vmid)})
		if err == nil {
			err = cl.await(ctx, cl.what, u)
		}
		switch {
		case err == nil || says(err, textsTaken):
			return nil
		case !backends.HasReason(err, backends.ReasonLocked):
			return err
		}
		if ended := cl.pause(ctx, n); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// again clones the template into the VMID of a VM that was just destroyed. A VMID
// that someone else took meanwhile isn't probed past.
func (cl *cloning) again(ctx context.Context, vmid int) error {
	cl.setHalfMade(vmid, cl.note)
	for try := 0; ; try++ {
		made, err := cl.into(ctx, vmid)
		if made != nil || err != nil {
			return err
		}
		all, err := cl.guests.get(ctx, 0)
		if err != nil {
			return err
		}
		if row, there := all[vmid]; there {
			found, err := cl.inspect(ctx, cl.what, cl.note.marks.Key, row)
			switch {
			case err != nil:
				return err
			case found.who == ours && found.machine.Marks.Claim == cl.note.marks.Claim:
				return nil
			case found.who == ours || found.who == stranger:
				return vmidLost(cl.what, vmid)
			}
		} else if cl.isHidden(vmid) {
			return backends.Errorf(backends.Conflict, "%s: something that the account's token doesn't see took the VMID %d.", cl.what, vmid).
				WithRemedy("The machine is gone: plan again, which makes it anew.")
		}
		if err := cl.pause(ctx, try); err != nil {
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
}

// restore gives a fresh clone what the old VM had: its options, then its disk's size,
// and the tag that comes last when all is done. It starts only a guest that is to run.
func (c *Client) restore(ctx context.Context, a again) error {
	n := a.note
	complete := n.marks
	n.marks.Complete = false
	n.image, n.disk = strconv.Itoa(a.template.vmid), c.keptAgain(n, a.template.config)
	v, err := c.setAgain(ctx, a, n)
	if err != nil {
		return err
	}
	had, _ := a.old.config.diskSize(c.account.disk)
	if has, ok := v.config.diskSize(c.account.disk); ok && has < had {
		if err := c.resize(ctx, a.what, v.where, had); err != nil {
			return err
		}
	}
	if a.spec.Start {
		if err := c.start(ctx, a.what, v.where); err != nil {
			return err
		}
	}
	if !complete.Complete {
		return nil
	}
	m := c.machine(v.vmid, a.old.config.get("name"), n, nil)
	_, err = c.MarkMachine(ctx, m, complete)
	return err
}

// setAgain writes the options of the old VM on the new one, as it was read: the VMID
// may be a stranger's by now. It returns it as it was before.
func (c *Client) setAgain(ctx context.Context, a again, n note) (*vm, error) {
	for try := 0; ; try++ {
		v, err := c.unlocked(ctx, a.what, a.old)
		if err != nil {
			return nil, err
		}
		switch now, marked := v.config.note(v.vmid); {
		case !marked || v.config.isTemplate() || now.marks.Key != n.marks.Key:
			return nil, notOurs(a.what, v, n.marks.Key)
		case now.marks.Claim != n.marks.Claim:
			return nil, claimedMeanwhile(a.what)
		}
		err = c.setOptions(ctx, a.what, v, c.optionsAgain(v, a, n))
		if err == nil || !says(err, textsChanged) && !says(err, textsMissing) || try >= changes {
			return v, err
		}
	}
}

// optionsAgain are the options that make a fresh clone v what the old VM was.
func (c *Client) optionsAgain(v *vm, a again, n note) url.Values {
	old, options := a.old.config, url.Values{}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if value := old.get(name); kept.MatchString(name) && v.config.get(name) != value {
			options.Set(name, value)
		}
	}
	if old["sockets"] == "" && v.config["sockets"].number() > 1 {
		options.Set("sockets", "1")
	}
	if v.config["protection"].isTrue() && !old["protection"].isTrue() {
		options.Set("protection", "0") // the template's
	}
	options.Set("description", describe(n, v.vmid, old.get("description")))
	options.Set("tags", joinTags(foreignTags(old.tags()), n.tags(v.vmid)))
	if drive, storage := old.cloudInit(); drive != "" {
		if has, _ := v.config.cloudInit(); has == "" {
			options.Set(drive, storage+":cloudinit")
		}
	}
	if a.files != nil {
		userDataOptions(options, v.config, c.custom(v.config.get("cicustom"), a.files), len(a.files) > 0, a.spec)
	}
	return options
}

// userDataOptions are the options of new user data instead of the old: those that name
// files, or keys alone.
func userDataOptions(options url.Values, has vmConfig, custom string, withFiles bool, spec backends.MachineSpec) {
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
	if len(spec.SSHKeys) > 0 && !withFiles {
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
			return nil, held(what, v.where, err)
		}
	}
}
