// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/sha1" //nolint:gosec // what Proxmox VE uses to notice changes
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tokenProof are the options that only root, without a token, may set.
var tokenProof = words("args lock")

// changeConfig is PUT and POST …/config: a change of options at once, or as a
// task.
func changeConfig(asTask bool) func(*call) (any, error) {
	return func(c *call) (any, error) {
		change, err := c.change()
		if err != nil {
			return nil, err
		}
		g, err := c.guest()
		if err != nil {
			return nil, err
		}
		if err := c.lockedFault(g.ID); err != nil {
			return nil, err
		}
		if err := c.lock(g); err != nil {
			return nil, err
		}
		if digest := c.params["digest"]; digest != "" && digest != g.digest() {
			return nil, died("checksum mismatch (file change by other user?)")
		}
		if err := checkLock(g); err != nil {
			return nil, died("%s", err)
		}
		if !asTask {
			return nil, c.apply(g, change)
		}
		upid, err := c.begin("qmconfig", work{VMID: g.ID})
		if err != nil {
			return nil, err
		}
		t := c.p.Tasks[len(c.p.Tasks)-1]
		if t.Work.Fail == "" {
			// What goes wrong in the worker shows in its exit status.
			if err := c.apply(g, change); err != nil {
				t.Work.Fail = err.Error()
			}
		}
		if t.Work.Fail == "" && c.params["background_delay"] != "" {
			return nil, nil
		}
		return upid, nil
	}
}

// change is what a call wants to be changed.
type change struct {
	set    map[string]string
	remove []string
	revert []string
	force  bool
}

// change reads the call's parameters, and checks the privileges for each option.
func (c *call) change() (change, error) {
	wanted := change{
		set: map[string]string{}, remove: splitList(c.params["delete"]), revert: splitList(c.params["revert"]), force: c.flag("force"),
	}
	if err := c.skipLock(); err != nil {
		return wanted, err
	}
	control := words("delete revert digest force skiplock background_delay import-working-storage")
	for name, value := range c.params {
		if !slices.Contains(control, name) {
			wanted.set[name] = value
		}
	}
	for _, list := range []struct {
		param string
		names []string
	}{{"delete", wanted.remove}, {"revert", wanted.revert}} {
		for _, name := range list.names {
			if _, known := find(configParams, name); !known || slices.Contains(control, name) {
				return wanted, badParam(list.param, "unknown option '%s'", name)
			}
			if _, both := wanted.set[name]; both {
				return wanted, badParam(list.param, "You can't use '-%s' and -%s %s' at the same time", name, list.param, name)
			}
		}
	}
	if len(wanted.set)+len(wanted.remove)+len(wanted.revert) == 0 {
		return wanted, died("no options specified")
	}
	names := append(slices.Sorted(maps.Keys(wanted.set)), wanted.remove...)
	for _, name := range names {
		if slices.Contains(tokenProof, name) {
			return wanted, died("only root can set '%s' config", name)
		}
		if err := c.mayChange(name, wanted.set[name]); err != nil {
			return wanted, err
		}
	}
	return wanted, c.mayUseBridges(wanted.set)
}

// cloudInitOptions are those that end in the files of the drive for cloud-init.
var cloudInitOptions = words("cicustom cipassword citype ciuser ciupgrade nameserver searchdomain sshkeys")

func isCloudInitOption(name string) bool {
	return slices.Contains(cloudInitOptions, name) || strings.HasPrefix(name, "ipconfig")
}

// optionPrivileges are the privileges for options that aren't VM.Config.Options'.
var optionPrivileges = map[string][]string{
	"VM.Config.CPU":    words("affinity cores cpu cpulimit cpuunits numa smp sockets vcpus"),
	"VM.Config.Memory": words("balloon memory shares"),
	"VM.Config.Disk":   words("boot bootdisk vmstatestorage"),
	"VM.Config.HWType": words("acpi arch audio0 bios hotplug hugepages keephugepages kvm machine ostype rng0 scsihw smbios1 tablet tdf vga vmgenid watchdog"),
}

// mayChange checks the privilege for an option.
func (c *call) mayChange(name, value string) error {
	vm := "/vms/" + c.ids["vmid"]
	switch {
	case driveName.MatchString(name):
		d := parseDrive(value)
		if d.isCDROM() || strings.HasSuffix(d.file, ":cloudinit") {
			return c.need(vm, "VM.Config.CDROM")
		}
		return c.need(vm, "VM.Config.Disk")
	case unusedName.MatchString(name):
		return c.need(vm, "VM.Config.Disk")
	case isCloudInitOption(name):
		return c.needAny(vm, "VM.Config.Cloudinit", "VM.Config.Network")
	case netName.MatchString(name):
		return c.need(vm, "VM.Config.Network")
	}
	for privilege, names := range optionPrivileges {
		if slices.Contains(names, name) {
			return c.need(vm, privilege)
		}
	}
	return c.need(vm, "VM.Config.Options")
}

// apply changes a VM's options: those that a running VM can't take are kept for
// its next start. So are those that could not be plugged, for which it fails.
func (c *call) apply(g *guest, wanted change) error {
	// On an error nothing is changed: a copy is worked on.
	if err := checkBalloon(g, wanted); err != nil {
		return err
	}
	if err := c.mayTag(g, wanted); err != nil {
		return err
	}
	before := *g
	g.Config, g.Pending, g.Removed = maps.Clone(g.Config), maps.Clone(g.Pending), maps.Clone(g.Removed)
	volumes := slices.Clone(c.p.Volumes)
	problems, err := c.applyEach(g, wanted)
	if err != nil {
		*g, c.p.Volumes = before, volumes
		return err
	}
	if g.Running && slices.Contains(g.features(), "cloudinit") {
		g.writeDrive()
	}
	if len(problems) > 0 {
		return badParams(problems)
	}
	return nil
}

// checkBalloon refuses a change of memory after which the balloon is larger.
func checkBalloon(g *guest, wanted change) error {
	after := func(name string) (value string, changes bool) {
		if value, changes = wanted.set[name]; !changes {
			value = g.effective()[name]
		}
		return value, changes
	}
	memory, changesMemory := after("memory")
	balloon, changesBalloon := after("balloon")
	if (changesMemory || changesBalloon) && memory != "" && atoi(balloon) > atoi(strings.TrimPrefix(memory, "current=")) {
		return died("balloon value too large (must be smaller than assigned memory)")
	}
	return nil
}

// applyEach changes one option after the other, and returns what could not be plugged.
func (c *call) applyEach(g *guest, wanted change) (problems map[string]string, err error) {
	problems = map[string]string{}
	waits := func(name, value string, remove bool) bool {
		if !g.Running {
			return false
		}
		result := c.plug(g, name, value, remove)
		if result.problem != "" {
			problems[name] = result.problem
		}
		return result.later
	}
	for _, name := range wanted.revert {
		delete(g.Pending, name)
		delete(g.Removed, name)
	}
	for _, name := range wanted.remove {
		_, exists := g.Config[name]
		delete(g.Pending, name)
		switch {
		case !exists:
			// Only the log says so.
		case waits(name, "", true):
			g.Removed[name] = true
		case driveName.MatchString(name) || unusedName.MatchString(name):
			if g.Config["protection"] == "1" {
				return nil, died("can't remove drive '%s' - protection mode enabled", name)
			}
			c.dropDrive(g, name, wanted.force)
		default:
			delete(g.Config, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.set)) {
		value, err := c.normalize(g, name, wanted.set[name])
		if err != nil {
			return nil, err
		}
		delete(g.Removed, name)
		delete(g.Pending, name)
		if g.Config[name] == value {
			continue
		}
		if waits(name, value, false) {
			g.Pending[name] = value
			continue
		}
		if old := g.Config[name]; driveName.MatchString(name) && old != "" && parseDrive(old).file != parseDrive(value).file {
			c.dropDrive(g, name, false)
		}
		g.Config[name] = value
		if value == "" {
			delete(g.Config, name)
		}
	}
	return problems, nil
}

// applyPending does at a start what had to wait for it.
func (c *call) applyPending(g *guest) {
	for name := range g.Removed {
		if driveName.MatchString(name) {
			c.dropDrive(g, name, false)
		}
		delete(g.Config, name)
	}
	maps.Copy(g.Config, g.Pending)
	g.Pending, g.Removed = map[string]string{}, map[string]bool{}
}

// normalize is a value as Proxmox VE writes it.
func (c *call) normalize(g *guest, name, value string) (string, error) {
	switch {
	case name == "description":
		return trimDescription(value), nil
	case name == "tags":
		return normalizeTags(value), nil
	case name == "memory":
		return strings.TrimPrefix(value, "current="), nil
	case netName.MatchString(name):
		return c.p.withMAC(value, false), nil
	case driveName.MatchString(name):
		return c.setDrive(g, name, value)
	}
	return value, nil
}

// trimDescription is a description after it was written to a file, as comments,
// and read again: without blanks at the end of the whole.
func trimDescription(text string) string { return strings.TrimRight(text, " \t\r\n\f\v") }

// normalizeTags writes tags as a cluster with default settings does: in lower
// case, each once, sorted.
func normalizeTags(text string) string {
	tags := splitList(strings.ToLower(text))
	slices.Sort(tags)
	return strings.Join(slices.Compact(tags), ";")
}

// withMAC writes a network card in its canonical form, MODEL=MAC first and the
// rest sorted; it makes an address where there is none, or where a fresh one is
// wanted.
func (p *cluster) withMAC(text string, fresh bool) string {
	var model, mac string
	var rest []property
	for _, part := range splitProperties(text, "model") {
		switch {
		case part.name == "model":
			model = part.value
		case part.name == "macaddr":
			mac = part.value
		case slices.Contains(cardModels, part.name):
			model, mac = part.name, part.value
		default:
			rest = append(rest, part)
		}
	}
	if mac == "" || fresh {
		mac = p.newMAC()
	}
	slices.SortStableFunc(rest, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return joinProperties(append([]property{{model, strings.ToUpper(mac)}}, rest...), "")
}

// lockedFault is the refusal of a call by a fault, for what needs a VM's lock.
func (c *call) lockedFault(vmid int) error {
	if _, ok := c.fault("lock-timeout"); ok {
		return died("%s", lockTimeout(vmid))
	}
	if _, ok := c.fault("locked"); ok {
		return died("VM is locked (clone)")
	}
	return nil
}

// effective are the options as they will be after the next start.
func (g *guest) effective() map[string]string {
	config := maps.Clone(g.Config)
	for name := range g.Removed {
		delete(config, name)
	}
	maps.Copy(config, g.Pending)
	return config
}

// digest is the checksum of the configuration's file.
func (g *guest) digest() string {
	var file strings.Builder
	writeConfig(&file, g.Config)
	if len(g.Pending)+len(g.Removed) > 0 {
		file.WriteString("\n[PENDING]\n")
		if len(g.Removed) > 0 {
			fmt.Fprintf(&file, "delete: %s\n", strings.Join(slices.Sorted(maps.Keys(g.Removed)), ","))
		}
		writeConfig(&file, g.Pending)
	}
	sum := sha1.Sum([]byte(file.String())) //nolint:gosec // no secret depends on it
	return hex.EncodeToString(sum[:])
}

func writeConfig(file *strings.Builder, config map[string]string) {
	if text, given := config["description"]; given {
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(file, "#%s\n", line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if name != "description" {
			fmt.Fprintf(file, "%s: %s\n", name, config[name])
		}
	}
}

func getConfig(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if name := c.params["snapshot"]; name != "" {
		return nil, died("snapshot '%s' does not exist", name)
	}
	config := g.effective()
	if c.flag("current") {
		config = g.Config
	}
	answer := map[string]any{"digest": g.digest()}
	for name, value := range config {
		answer[name] = typed(name, value)
	}
	return answer, nil
}

// typed is an option in an answer: integers and booleans are numbers, what has a
// fraction stays the text of the file.
func typed(name, value string) any {
	if name == "cipassword" {
		return masked
	}
	p, known := find(configParams, name)
	if known && (p.kind == integer || p.kind == boolean) {
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	}
	return value
}

func getPending(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	names := maps.Clone(g.Config)
	maps.Copy(names, g.Pending)
	rows := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := map[string]any{"key": name}
		if value, given := g.Config[name]; given {
			row["value"] = fmt.Sprint(typed(name, value))
		}
		if value, given := g.Pending[name]; given {
			row["pending"] = fmt.Sprint(typed(name, value))
		}
		if g.Removed[name] {
			row["delete"] = 1
		}
		rows = append(rows, row)
	}
	return rows, nil
}
