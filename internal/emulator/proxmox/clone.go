// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// temporary is the description of a clone until the first of its drives is copied:
// the comment that its file then has.
const temporary = "qmclone temporary file"

// mayClone are the privileges that are checked before anything else: the new VMID
// need not be a number yet.
func mayClone(c *call) error {
	if err := c.need("/vms/"+c.ids["vmid"], "VM.Clone"); err != nil {
		return err
	}
	if pool := c.params["pool"]; pool != "" && c.may("/pool/"+pool, "VM.Allocate") {
		return nil
	}
	return c.need("/vms/"+c.params["newid"], "VM.Allocate")
}

// clone begins a clone. What it checks here it checks again as a task, under the
// locks.
func clone(c *call) (any, error) {
	if pool := c.params["pool"]; pool != "" && !slices.Contains(c.p.Pools, pool) {
		return nil, refused(403, "Permission check failed (pool '%s' does not exist)", pool)
	}
	target := c.params["target"]
	if target == c.node() {
		target = ""
	}
	if target != "" && !c.s.hasNode(target) {
		return nil, died("no such cluster node '%s'", target)
	}
	if name := c.params["storage"]; name != "" {
		st, known := c.s.storage(name)
		switch {
		case !known:
			return nil, died("storage '%s' does not exist", name)
		case target != "" && !st.Shared:
			return nil, died("can't clone to non-shared storage '%s'", name)
		}
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := c.mayCopy(g, target); err != nil {
		return nil, err
	}
	newid := atoi(c.params["newid"])
	if err := c.p.cloneChecks(g, newid, c.params); err != nil {
		return nil, died("%s", err)
	}
	params := maps.Clone(c.params)
	params["target"] = target
	return c.begin("qmclone", work{VMID: g.ID, Params: params})
}

// mayCopy checks the privileges on storages and bridges, and whether the drives
// can go to the target.
func (c *call) mayCopy(g *guest, target string) error {
	shared := true
	for _, key := range driveKeys(g.Config) {
		d := parseDrive(g.Config[key])
		st, known := c.s.storage(d.storage())
		if !known {
			continue
		}
		shared = shared && st.Shared
		if d.isCDROM() {
			continue
		}
		if name := c.params["storage"]; name != "" {
			st, _ = c.s.storage(name)
		}
		if err := c.need(storagePath(st.Name), "Datastore.AllocateSpace"); err != nil {
			return err
		}
		if !st.holds("images") {
			return badParam("storage", "storage '%s' does not support vm images", st.Name)
		}
	}
	if err := c.mayUseBridges(g.Config); err != nil {
		return err
	}
	if target != "" && !shared {
		return died("can't clone VM to node '%s' (VM uses local storage)", target)
	}
	return nil
}

// mayUseBridges checks the privilege on the bridges of network cards.
func (c *call) mayUseBridges(config map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !netName.MatchString(key) {
			continue
		}
		bridge := lookup(config[key], "model", "bridge")
		if bridge == "" {
			continue
		}
		if err := c.need(bridgePath(bridge, lookup(config[key], "model", "tag")), "SDN.Use"); err != nil {
			return err
		}
	}
	return nil
}

// isFull tells whether a clone copies everything.
func isFull(g *guest, params map[string]string) bool {
	if full, given := params["full"]; given {
		return full == "1"
	}
	return !g.isTemplate()
}

// cloneChecks are those of the call and, again, of the task.
func (p *cluster) cloneChecks(g *guest, newid int, params map[string]string) error {
	if err := checkLock(g); err != nil {
		return err
	}
	full := isFull(g, params)
	switch {
	case params["snapname"] != "":
		return fmt.Errorf("snapshot '%s' does not exist", params["snapname"])
	case params["storage"] != "" && !full:
		return errors.New("parameter 'storage' not allowed for linked clones")
	case params["format"] != "" && !full:
		return errors.New("parameter 'format' not allowed for linked clones")
	}
	// It only looks for a file of the same node.
	if other := p.VMs[newid]; other != nil && other.Node == g.Node && !other.LXC {
		return fmt.Errorf("unable to create VM %d: config file already exists", newid)
	}
	for _, key := range driveKeys(g.Config) {
		d := parseDrive(g.Config[key])
		_, name, _ := strings.Cut(d.file, ":")
		if !full && !d.isCDROM() && !strings.HasPrefix(path.Base(name), "base-") {
			return fmt.Errorf("Linked clone feature is not supported for '%s' (%s)", d.file, key) //nolint:staticcheck // the vendor's words
		}
	}
	return nil
}

// cloneStep is a clone's work: the locks and an anonymous configuration, then one
// step for each drive, then the end.
func cloneStep(w *worker) error {
	source, err := w.guest()
	if err != nil {
		return err
	}
	if w.t.Stage == 0 {
		return cloneBegins(w, source)
	}
	if w.t.Work.Fail != "" {
		return abandonClone(w, w.t.Work.Fail)
	}
	if err := copyNext(w, source); err != nil {
		return abandonClone(w, err.Error())
	}
	if len(w.t.Work.Drives) > 0 {
		return w.then(w.copyTime())
	}
	return cloneEnds(w)
}

func (w *worker) newID() int { return atoi(w.t.Work.Params["newid"]) }

func cloneBegins(w *worker, source *guest) error {
	newid := w.newID()
	if err := w.lock(source.ID, !source.Running, cloneLockWait); err != nil {
		return err
	}
	if err := w.lock(newid, false, cloneLockWait); err != nil {
		return err
	}
	if err := w.p.cloneChecks(source, newid, w.t.Work.Params); err != nil {
		return err
	}
	if w.p.VMs[newid] != nil {
		// The cluster's file system has one file of a VMID.
		return fmt.Errorf("close (rename) atomic file '/etc/pve/nodes/%s/qemu-server/%d.conf' failed: File exists", w.t.Node, newid)
	}
	made := &guest{
		ID: newid, Node: w.t.Node, Created: w.at, HiddenUntil: w.at.Add(w.t.Work.Hide),
		Config: map[string]string{"description": temporary, "lock": "clone"},
	}
	made.complete()
	w.p.VMs[newid] = made
	w.t.Work.Result = w.p.cloneConfig(source, w.t.Work.Params)
	w.t.Work.Agent = source.Agent
	for _, key := range driveKeys(source.Config) {
		d := parseDrive(source.Config[key])
		if d.isCDROM() && !d.isCloudInit() {
			w.t.Work.Result[key] = source.Config[key]
			continue
		}
		w.t.Work.Drives = append(w.t.Work.Drives, key)
	}
	if isFull(source, w.t.Work.Params) {
		w.log("create full clone of drives %s", strings.Join(w.t.Work.Drives, ", "))
	} else {
		w.log("create linked clone of drives %s", strings.Join(w.t.Work.Drives, ", "))
	}
	return w.then(w.copyTime())
}

// cloneConfig is what a clone has of its source, without drives: all but what
// must be its own.
func (p *cluster) cloneConfig(source *guest, params map[string]string) map[string]string {
	config := map[string]string{}
	for key, value := range source.Config {
		switch {
		case driveName.MatchString(key), unusedName.MatchString(key):
		case key == "template", key == "lock", key == "vmstate", key == "parent":
		case netName.MatchString(key):
			config[key] = p.withMAC(value, true)
		case key == "smbios1":
			config[key] = "uuid=" + newUUID()
		case key == "vmgenid":
			config[key] = newUUID()
		default:
			config[key] = value
		}
	}
	if params["name"] != "" {
		config["name"] = params["name"]
	} else {
		name := source.Config["name"]
		if name == "" {
			name = strconv.Itoa(source.ID)
		}
		config["name"] = "Copy-of-VM-" + name
	}
	if text := trimDescription(params["description"]); params["description"] != "" {
		config["description"] = text
	}
	return config
}

// copyTime is how long the next of a clone's drives takes: one for cloud-init a
// small part of the whole.
func (w *worker) copyTime() time.Duration {
	source := w.p.VMs[w.t.Work.VMID]
	if len(w.t.Work.Drives) == 0 || source == nil {
		return 0
	}
	whole := w.s.options.CloneTime
	if !isFull(source, w.t.Work.Params) {
		whole /= 4
	}
	disks := 0
	for _, key := range driveKeys(source.Config) {
		if d := parseDrive(source.Config[key]); !d.isCDROM() {
			disks++
		}
	}
	if parseDrive(source.Config[w.t.Work.Drives[0]]).isCloudInit() {
		return whole / 4
	}
	return whole * 3 / 4 / time.Duration(max(disks, 1))
}

// copyNext finishes the copy of a drive: only now the configuration says whose it
// is.
func copyNext(w *worker, source *guest) error {
	what := &w.t.Work
	made := w.p.VMs[w.newID()]
	if made == nil {
		return fmt.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", w.t.Node, w.newID()) //nolint:staticcheck // the vendor's words
	}
	if len(what.Drives) > 0 {
		key := what.Drives[0]
		from := parseDrive(source.Config[key])
		linked := !isFull(source, what.Params)
		if what.FailSpace && !from.isCloudInit() {
			st, _ := w.s.storage(cmp.Or(what.Params["storage"], from.storage()))
			return full(st, made.ID)
		}
		copied, err := w.s.copyDrive(w.p, w.t.Node, from, what.Params["storage"], made.ID, linked, w.at)
		if err != nil {
			return err
		}
		what.Drives = what.Drives[1:]
		what.Volumes = append(what.Volumes, copied.file)
		what.Result[key] = copied.String()
		w.log("drive %s (%s)", key, from.file)
		if st, _ := w.s.storage(copied.storage()); st.Type == "lvm" {
			w.warn("volume deactivation failed: %s", copied.file)
		}
	}
	made.Config = maps.Clone(what.Result)
	made.Config["lock"] = "clone"
	return nil
}

// cloneEnds takes the lock from the configuration and moves it to its node.
func cloneEnds(w *worker) error {
	made := w.p.VMs[w.newID()]
	delete(made.Config, "lock")
	made.Agent = w.t.Work.Agent
	made.Pool = w.t.Work.Params["pool"]
	if target := w.t.Work.Params["target"]; target != "" {
		made.Node = target
	}
	return nil
}

// abandonClone frees what a clone has made, and says that it failed.
func abandonClone(w *worker, why string) error {
	for _, id := range w.t.Work.Volumes {
		w.p.removeVolume(w.t.Node, id)
	}
	if made := w.p.VMs[w.newID()]; made != nil && made.Config["lock"] == "clone" && len(w.t.Held) > 0 {
		delete(w.p.VMs, made.ID)
	}
	return fmt.Errorf("clone failed: %s", why)
}

// begin starts a task of the VM of the call, with what the faults of the call do
// to it, and returns its UPID.
func (c *call) begin(kind string, what work) (string, error) {
	return c.beginFor(kind, c.ids["vmid"], what)
}

func (c *call) beginFor(kind, id string, what work) (string, error) {
	if _, ok := c.fault(emulator.KindLocked); ok && kind == "qmclone" {
		return "", died("VM is locked (clone)")
	}
	if _, ok := c.fault(emulator.KindLocked); ok {
		what.Fail = "VM is locked (clone)"
	}
	if _, ok := c.fault(emulator.KindFailAction); ok {
		what.Fail = "command '/usr/bin/" + kind + "' failed: exit code 1"
	}
	_, what.FailLock = c.fault(emulator.KindLockTimeout)
	_, what.FailSpace = c.fault(emulator.KindCapacity)
	if rule, ok := c.fault(emulator.KindHideFromLists); ok {
		what.Hide = time.Duration(rule.Delay)
	}
	t := c.p.begin(c.node(), kind, id, c.user, c.now, what)
	t.Due = c.now.Add(c.s.options.ForkTime)
	t.Warnings = c.s.warnings
	if _, ok := c.fault(emulator.KindTaskWarnings); ok {
		t.Warnings++
	}
	for i := range t.Warnings {
		t.Log = append(t.Log, fmt.Sprintf("WARN: warning %d", i+1))
	}
	return t.UPID, nil
}
