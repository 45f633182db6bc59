// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	driveName  = regexp.MustCompile(`^((ide|scsi|virtio|sata)\d+|efidisk0|tpmstate0)$`)
	unusedName = regexp.MustCompile(`^unused\d+$`)
	netName    = regexp.MustCompile(`^net\d+$`)
	cloudDrive = regexp.MustCompile(`^vm-\d+-cloudinit$`)
	newDrive   = regexp.MustCompile(`^([^:]+):(cloudinit|\d+(?:\.\d+)?)$`)
)

// drive is a drive option: its volume (or "none", or "cdrom") and the rest.
type drive struct {
	file string
	rest []property
}

func parseDrive(text string) drive {
	var d drive
	for _, p := range splitProperties(text, "file") {
		if p.name == "file" || p.name == "volume" {
			d.file = p.value
			continue
		}
		d.rest = append(d.rest, p)
	}
	return d
}

func (d drive) get(name string) string {
	for _, p := range d.rest {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

func (d *drive) set(name, value string) {
	d.rest = slices.DeleteFunc(slices.Clone(d.rest), func(p property) bool { return p.name == name })
	if value != "" {
		d.rest = append(d.rest, property{name, value})
	}
}

// String writes the drive as configurations have it: the volume, and the rest
// sorted.
func (d drive) String() string {
	rest := slices.Clone(d.rest)
	slices.SortStableFunc(rest, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return joinProperties(append([]property{{"file", d.file}}, rest...), "file")
}

func (d drive) isCDROM() bool { return d.get("media") == "cdrom" }

// isCloudInit tells whether the drive is the one that cloud-init reads.
func (d drive) isCloudInit() bool {
	_, name, _ := strings.Cut(d.file, ":")
	return cloudDrive.MatchString(name)
}

// storage is the storage of the drive's volume; empty where it has none.
func (d drive) storage() string {
	name, _, found := strings.Cut(d.file, ":")
	if !found {
		return ""
	}
	return name
}

// driveKeys are the drives of a configuration, sorted.
func driveKeys(config map[string]string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if driveName.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// hasCloudInit tells whether a configuration has a drive for cloud-init, without
// which its options do nothing.
func hasCloudInit(config map[string]string) bool {
	return slices.ContainsFunc(driveKeys(config), func(key string) bool { return parseDrive(config[key]).isCloudInit() })
}

// cloudInitSize is the size of a drive for cloud-init, in bytes.
const cloudInitSize = 4 << 20

// setDrive prepares the value of a drive option: STORAGE:cloudinit and
// STORAGE:GIB allocate a volume, anything else must exist.
func (c *call) setDrive(g *guest, key, value string) (string, error) {
	d := parseDrive(value)
	if d.file == "none" || d.file == "cdrom" {
		return d.String(), nil
	}
	if parts := newDrive.FindStringSubmatch(d.file); parts != nil {
		return c.makeDrive(g, d, parts[1], parts[2])
	}
	v := c.p.volume(g.Node, d.file)
	if v == nil {
		if _, known := c.s.storage(d.storage()); !known {
			return "", died("storage '%s' does not exist", d.storage())
		}
		return "", died("unable to hotplug %s: volume '%s' does not exist", key, d.file)
	}
	if v.Content == "images" {
		d.set("size", formatSize(v.Size))
	}
	return d.String(), nil
}

func (c *call) makeDrive(g *guest, d drive, storage, what string) (string, error) {
	st, known := c.s.storage(storage)
	switch {
	case !known:
		return "", died("storage '%s' does not exist", storage)
	case !st.holds("images"):
		return "", died("storage '%s' does not support content-type 'images'", storage)
	}
	if err := c.need(storagePath(storage), "Datastore.AllocateSpace"); err != nil {
		return "", err
	}
	if what == "cloudinit" {
		if c.p.volume(g.Node, fmt.Sprintf("%s:vm-%d-cloudinit", storage, g.ID)) == nil {
			c.s.allocate(c.p, g.Node, st, fmt.Sprintf("vm-%d-cloudinit", g.ID), g.ID, cloudInitSize, c.now)
		}
		d.file = fmt.Sprintf("%s:vm-%d-cloudinit", storage, g.ID)
		d.set("media", "cdrom")
		d.set("size", formatSize(cloudInitSize))
		return d.String(), nil
	}
	gibs, err := strconv.ParseFloat(what, 64)
	if err != nil || gibs <= 0 {
		return "", died("unable to allocate a volume of %s GiB", what)
	}
	v := c.s.allocate(c.p, g.Node, st, fmt.Sprintf("vm-%d-disk-", g.ID), g.ID, int64(gibs*gib), c.now)
	d.file = v.id()
	d.set("size", formatSize(v.Size))
	return d.String(), nil
}

// dropDrive takes a drive away: a disk becomes an unused one, unless it is to be
// destroyed; the drive for cloud-init is destroyed.
func (c *call) dropDrive(g *guest, key string, destroy bool) {
	d := parseDrive(g.Config[key])
	delete(g.Config, key)
	v := c.p.volume(g.Node, d.file)
	if v == nil || v.VMID != g.ID || c.mentions(g, d.file) {
		return
	}
	if destroy || d.isCloudInit() || unusedName.MatchString(key) {
		c.p.removeVolume(g.Node, d.file)
		return
	}
	for i := range numbered["unused"] {
		name := "unused" + strconv.Itoa(i)
		if _, taken := g.Config[name]; !taken {
			g.Config[name] = d.file
			return
		}
	}
}

// mentions tells whether an option still names a volume.
func (c *call) mentions(g *guest, file string) bool {
	for key, value := range g.Config {
		if (driveName.MatchString(key) || unusedName.MatchString(key)) && parseDrive(value).file == file {
			return true
		}
	}
	return false
}

// copyDrive makes a clone's volume of a drive.
func (s *Service) copyDrive(p *cluster, node string, source drive, storage string, vmid int, linked bool, at time.Time) (drive, error) {
	v := p.volume(node, source.file)
	if v == nil {
		return drive{}, fmt.Errorf("volume '%s' does not exist", source.file)
	}
	if storage == "" || (linked && !source.isCloudInit()) {
		storage = v.Storage
	}
	st, known := s.storage(storage)
	if !known {
		return drive{}, fmt.Errorf("storage '%s' does not exist", storage)
	}
	made := source
	if source.isCloudInit() {
		name := fmt.Sprintf("vm-%d-cloudinit", vmid)
		s.allocate(p, node, st, name, vmid, cloudInitSize, at)
		made.file = storage + ":" + name
		return made, nil
	}
	if !linked && p.used(node, st)+v.Size > st.Total {
		return drive{}, full(st, vmid)
	}
	stem := fmt.Sprintf("vm-%d-disk-", vmid)
	copied := s.allocate(p, node, st, stem, vmid, v.Size, at)
	if linked {
		copied.Parent = v.id()
		if st.Type == "rbd" {
			copied.Name = v.Name + "/" + copied.Name
		}
	}
	made.file = copied.id()
	made.set("size", formatSize(copied.Size))
	return made, nil
}
