// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"slices"
	"strings"
)

func storageRoutes() []route {
	see := func(c *call) error {
		return c.needAny(storagePath(c.ids["storage"]), "Datastore.Audit", "Datastore.AllocateSpace")
	}
	const storage = "/nodes/{node}/storage/{storage}"
	return []route{
		{method: "GET", path: "/nodes/{node}/storage", handle: listStorages},
		{method: "GET", path: storage + "/status", allow: see, handle: storageStatus},
		{method: "GET", path: storage + "/content", allow: see, handle: listContent},
		{method: "GET", path: storage + "/content/{volume}", handle: getContent},
		{method: "DELETE", path: storage + "/content/{volume}", handle: deleteContent},
	}
}

func (c *call) maySee(st Storage) bool {
	return c.may(storagePath(st.Name), "Datastore.Audit") || c.may(storagePath(st.Name), "Datastore.AllocateSpace")
}

func (c *call) storageRow(st Storage) map[string]any {
	used := c.p.used(c.node(), st)
	row := map[string]any{
		"type": st.Type, "content": st.Content, "active": 1, "enabled": 1, "shared": 0,
		"total": st.Total, "used": used, "avail": max(0, st.Total-used),
	}
	if st.Shared {
		row["shared"] = 1
	}
	return row
}

func listStorages(c *call) (any, error) {
	rows := []any{}
	wanted := splitList(c.params["content"])
	for _, st := range c.s.options.Storages {
		matches := len(wanted) == 0 || slices.ContainsFunc(wanted, st.holds)
		if only := c.params["storage"]; !matches || !c.maySee(st) || (only != "" && only != st.Name) {
			continue
		}
		row := c.storageRow(st)
		row["storage"] = st.Name
		row["used_fraction"] = 0.0
		if st.Total > 0 {
			row["used_fraction"] = float64(c.p.used(c.node(), st)) / float64(st.Total)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// storageResources are a node's storages in the list of the whole cluster.
func (c *call) storageResources(node string) []map[string]any {
	var rows []map[string]any
	for _, st := range c.s.options.Storages {
		if !c.maySee(st) {
			continue
		}
		row := map[string]any{
			"id": "storage/" + node + "/" + st.Name, "type": "storage", "storage": st.Name, "node": node, "status": "available",
			"shared": 0, "content": st.Content, "plugintype": st.Type, "disk": c.p.used(node, st), "maxdisk": st.Total,
		}
		if st.Shared {
			row["shared"] = 1
		}
		if c.p.Down[node] {
			row["status"] = "unknown"
		}
		rows = append(rows, row)
	}
	return rows
}

// storageOf is the storage of the path.
func (c *call) storageOf() (Storage, error) {
	st, known := c.s.storage(c.ids["storage"])
	if !known {
		return st, died("storage '%s' does not exist", c.ids["storage"])
	}
	return st, nil
}

func storageStatus(c *call) (any, error) {
	st, err := c.storageOf()
	if err != nil {
		return nil, err
	}
	return c.storageRow(st), nil
}

// contentOf are the volumes of a storage as the node of the path sees them.
func (c *call) contentOf(st Storage) []*volume {
	var all []*volume
	for _, v := range c.p.Volumes {
		if v.Storage == st.Name && (v.Node == "" || v.Node == c.node()) {
			all = append(all, v)
		}
	}
	return append(all, folderSnippets(st)...)
}

func listContent(c *call) (any, error) {
	st, err := c.storageOf()
	if err != nil {
		return nil, err
	}
	rows := []any{}
	for _, v := range c.contentOf(st) {
		if kind := c.params["content"]; kind != "" && kind != v.Content {
			continue
		}
		if vmid := c.params["vmid"]; vmid != "" && atoi(vmid) != v.VMID {
			continue
		}
		row := map[string]any{"volid": v.id(), "content": v.Content, "format": v.Format, "size": v.Size, "ctime": v.Created.Unix()}
		if v.VMID != 0 {
			row["vmid"] = v.VMID
		}
		if v.Parent != "" {
			_, row["parent"], _ = strings.Cut(v.Parent, ":")
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// content finds the volume of the path: its id, or its name only.
func (c *call) content() (*volume, error) {
	st, err := c.storageOf()
	if err != nil {
		return nil, err
	}
	id := c.ids["volume"]
	if !strings.Contains(id, ":") {
		id = st.Name + ":" + id
	}
	if !strings.HasPrefix(id, st.Name+":") {
		return nil, died("storage ID missmatch") // sic
	}
	for _, v := range c.contentOf(st) {
		if v.id() == id {
			return v, nil
		}
	}
	return nil, died("volume '%s' does not exist", id)
}

func getContent(c *call) (any, error) {
	if err := c.needAny(storagePath(c.ids["storage"]), "Datastore.Audit", "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	v, err := c.content()
	if err != nil {
		return nil, err
	}
	return map[string]any{"path": "/dev/emulated/" + v.Storage + "/" + v.Name, "size": v.Size, "used": v.Size, "format": v.Format}, nil
}

// deleteContent removes a volume. It is done at once; the task that says so ends
// right after.
func deleteContent(c *call) (any, error) {
	if err := c.need(storagePath(c.ids["storage"]), "Datastore.Allocate"); err != nil {
		return nil, err
	}
	v, err := c.content()
	if err != nil {
		return nil, err
	}
	upid, err := c.beginFor("imgdel", v.Storage+"@"+c.node(), work{})
	if err != nil {
		return nil, err
	}
	t := c.p.Tasks[len(c.p.Tasks)-1]
	if t.Work.Fail != "" {
		return upid, nil
	}
	if err := c.s.deleteVolume(c.p, c.node(), v); err != nil {
		t.Work.Fail = err.Error()
	}
	if c.params["delay"] != "" && t.Work.Fail == "" {
		return nil, nil
	}
	return upid, nil
}
