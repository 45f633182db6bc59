// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Storage is a storage of the cluster.
type Storage struct {
	Name string
	// Type is e.g. "dir", "lvmthin", "lvm" or "rbd".
	Type string
	// Shared tells that all nodes see the same volumes.
	Shared bool
	// Content is what may be on it, e.g. "images,snippets".
	Content string
	// Total is its size in bytes.
	Total int64
	// Folder, of this machine, is where its snippets are, if not in memory: the
	// files in it are the storage's, as SFTP or a mount would bring them there.
	Folder string
}

const gib = 1 << 30

// SnippetsStorage is the storage of [Options.Snippets].
const SnippetsStorage = "snippets"

// DefaultStorages are two on each node, local (files, snippets too) and local-lvm
// (disks), and one that all nodes share.
func DefaultStorages() []Storage {
	return []Storage{
		{Name: "local", Type: "dir", Content: "backup,import,iso,snippets,vztmpl", Total: 100 * gib},
		{Name: "local-lvm", Type: "lvmthin", Content: "images,rootdir", Total: 800 * gib},
		{Name: "shared", Type: "rbd", Shared: true, Content: "images,rootdir", Total: 4000 * gib},
	}
}

func (st Storage) holds(content string) bool {
	return slices.Contains(strings.Split(st.Content, ","), content)
}

// storage finds a storage by its name.
func (s *Service) storage(name string) (Storage, bool) {
	i := slices.IndexFunc(s.options.Storages, func(st Storage) bool { return st.Name == name })
	if i < 0 {
		return Storage{}, false
	}
	return s.options.Storages[i], true
}

// volume is a disk or a file on a storage.
type volume struct {
	Storage string `json:"storage"`
	// Node is where it is; empty on a shared storage.
	Node string `json:"node"`
	// Name is the volume's id without the storage, e.g. "vm-100-disk-0".
	Name    string    `json:"name"`
	VMID    int       `json:"vmid"`
	Content string    `json:"content"`
	Format  string    `json:"format"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
	// Parent is the base volume of a linked clone, by its id.
	Parent string `json:"parent"`
	// Text is what is in a snippet.
	Text string `json:"text"`
}

func (v *volume) id() string { return v.Storage + ":" + v.Name }

// volume finds a volume as a node sees it.
func (p *cluster) volume(node, id string) *volume {
	for _, v := range p.Volumes {
		if v.id() == id && (v.Node == "" || v.Node == node) {
			return v
		}
	}
	return nil
}

func (p *cluster) removeVolume(node, id string) {
	if v := p.volume(node, id); v != nil {
		p.Volumes = slices.DeleteFunc(p.Volumes, func(other *volume) bool { return other == v })
	}
}

// allocate makes a volume for a VM, with the first free number where the name
// ends in "disk-".
func (s *Service) allocate(p *cluster, node string, st Storage, name string, vmid int, size int64, at time.Time) *volume {
	if st.Shared {
		node = ""
	}
	format := "raw"
	if strings.HasSuffix(name, "disk-") {
		stem := name
		for i := 0; ; i++ {
			name = stem + strconv.Itoa(i)
			taken := slices.ContainsFunc(p.Volumes, func(v *volume) bool {
				return v.Storage == st.Name && v.Node == node && (v.Name == name || strings.HasSuffix(v.Name, "/"+name))
			})
			if !taken {
				break
			}
		}
	}
	v := &volume{Storage: st.Name, Node: node, Name: name, VMID: vmid, Content: "images", Format: format, Size: size, Created: at}
	p.Volumes = append(p.Volumes, v)
	return v
}

// inUse tells whether a linked clone has the volume as its base.
func (p *cluster) inUse(v *volume) bool {
	return slices.ContainsFunc(p.Volumes, func(other *volume) bool { return other.Parent == v.id() && other.Node == v.Node })
}

// used is how many bytes of a storage are taken.
func (p *cluster) used(node string, st Storage) int64 {
	var sum int64
	for _, v := range p.Volumes {
		if v.Storage == st.Name && (v.Node == "" || v.Node == node) {
			sum += v.Size
		}
	}
	return sum
}

// full is how a storage says that it has no room.
func full(st Storage, vmid int) error {
	switch st.Type {
	case "lvmthin", "lvm":
		return fmt.Errorf("lvcreate 'pve/vm-%d-disk-0' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold", vmid)
	case "rbd":
		return errors.New("rbd error: rbd: create error: (28) No space left on device")
	default:
		return errors.New("unable to create image: No space left on device")
	}
}

// snippet finds the text of a snippet on a storage as a node sees it.
func (s *Service) snippet(p *cluster, node, id string) (text string, found bool) {
	if v := p.volume(node, id); v != nil && v.Content == "snippets" {
		return v.Text, true
	}
	name, file, _ := strings.Cut(id, ":snippets/")
	st, known := s.storage(name)
	if !known || st.Folder == "" || file == "" || file != filepath.Base(file) {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(st.Folder, file))
	return string(data), err == nil
}

// folderSnippets are the snippets in a storage's folder.
func folderSnippets(st Storage) []*volume {
	if st.Folder == "" {
		return nil
	}
	// A folder that can't be read has no snippets: so says the real one, in a
	// warning that nobody sees.
	entries, _ := os.ReadDir(st.Folder)
	var all []*volume
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		all = append(all, &volume{
			Storage: st.Name, Name: "snippets/" + entry.Name(), Content: "snippets", Format: "snippet",
			Size: info.Size(), Created: info.ModTime(),
		})
	}
	return all
}

// sizeOf reads a size as options write it: bytes, or K, M, G, T.
func sizeOf(text string) int64 {
	if text == "" {
		return 0
	}
	unit := int64(1)
	if i := strings.IndexByte("KMGT", text[len(text)-1]); i >= 0 {
		unit = 1 << (10 * (i + 1))
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(n * float64(unit))
}

// formatSize writes a size in the largest unit that needs no fraction.
func formatSize(size int64) string {
	unit := ""
	for _, next := range []string{"K", "M", "G", "T"} {
		if size == 0 || size%1024 != 0 {
			break
		}
		size, unit = size/1024, next
	}
	return strconv.FormatInt(size, 10) + unit
}

// deleteVolume removes a volume, or the file of a snippet.
func (s *Service) deleteVolume(p *cluster, node string, v *volume) error {
	if p.inUse(v) {
		return fmt.Errorf("base volume '%s' is still in use by linked cloned", v.id())
	}
	if p.volume(node, v.id()) != nil {
		p.removeVolume(node, v.id())
		return nil
	}
	st, _ := s.storage(v.Storage)
	name := strings.TrimPrefix(v.Name, "snippets/")
	if err := os.Remove(filepath.Join(st.Folder, filepath.Base(name))); err != nil {
		return fmt.Errorf("unlink '%s' failed", name)
	}
	return nil
}
