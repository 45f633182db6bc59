// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Denial takes a privilege away.
type Denial struct {
	// Token is whose, as user@realm!name; empty: everyone's.
	Token string
	// Path is where, e.g. "/vms/100" or "/storage/shared", and all below it;
	// "/" is everywhere.
	Path string
	// Privilege is e.g. "VM.Clone"; "*" is every one.
	Privilege string
}

// Denials are what may not be done. It is a [flag.Value] that takes
// PATH=PRIVILEGE, or TOKEN:PATH=PRIVILEGE, any number of times.
type Denials []Denial

// String lists the denials, as Set takes them.
func (d *Denials) String() string {
	texts := make([]string, len(*d))
	for i, denial := range *d {
		texts[i] = denial.Path + "=" + denial.Privilege
		if denial.Token != "" {
			texts[i] = denial.Token + ":" + texts[i]
		}
	}
	return strings.Join(texts, ",")
}

// Set adds a denial.
func (d *Denials) Set(text string) error {
	token, rest, found := strings.Cut(text, ":")
	if !found {
		token, rest = "", text
	}
	path, privilege, found := strings.Cut(rest, "=")
	if !found || !strings.HasPrefix(path, "/") || privilege == "" {
		return fmt.Errorf("a denial is given as PATH=PRIVILEGE, such as /vms=VM.Clone, or as user@realm!name:PATH=PRIVILEGE")
	}
	*d = append(*d, Denial{token, path, privilege})
	return nil
}

// Grant gives privileges to a token that so has no others: what an access control
// list does.
type Grant struct {
	// Token is whose, as user@realm!name.
	Token string
	// Path is where, and all below it. "/pool/NAME" is also the VMs in the pool.
	Path string
	// Privileges are e.g. "VM.Audit"; "*" is every one.
	Privileges []string
}

// covers tells whether an ACL's path is that of an object or above it.
func covers(path, object string) bool {
	return path == "/" || path == object || strings.HasPrefix(object, strings.TrimSuffix(path, "/")+"/")
}

// may tells whether the caller has a privilege on an object.
func (c *call) may(object, privilege string) bool {
	for _, d := range c.s.options.Denials {
		if (d.Token == "" || d.Token == c.user) && covers(d.Path, object) && (d.Privilege == "*" || d.Privilege == privilege) {
			return false
		}
	}
	restricted := false
	for _, g := range c.s.options.Grants {
		if g.Token != c.user {
			continue
		}
		restricted = true
		if (covers(g.Path, object) || c.inPool(g.Path, object)) &&
			(slices.Contains(g.Privileges, privilege) || slices.Contains(g.Privileges, "*")) {
			return true
		}
	}
	return !restricted
}

// inPool tells whether an object is a VM in the pool of an ACL's path. A VM that
// is gone is in none, so its caller is refused and not told that it is missing.
func (c *call) inPool(path, object string) bool {
	pool, isPool := strings.CutPrefix(path, "/pool/")
	id, isVM := strings.CutPrefix(object, "/vms/")
	if !isPool || !isVM {
		return false
	}
	g := c.p.VMs[atoi(id)]
	return g != nil && g.Pool == pool
}

// need is the refusal where the caller lacks one of the privileges.
func (c *call) need(object string, privileges ...string) error {
	for _, privilege := range privileges {
		if !c.may(object, privilege) {
			return forbidden(object, privilege)
		}
	}
	return nil
}

// needAny is the refusal where the caller has none of the privileges.
func (c *call) needAny(object string, privileges ...string) error {
	if slices.ContainsFunc(privileges, func(p string) bool { return c.may(object, p) }) {
		return nil
	}
	return forbidden(object, strings.Join(privileges, "|"))
}

// needVM makes the check of a route about the VM of its path.
func needVM(privileges ...string) func(*call) error {
	return func(c *call) error { return c.need("/vms/"+c.ids["vmid"], privileges...) }
}

func needNode(privileges ...string) func(*call) error {
	return func(c *call) error { return c.need("/nodes/"+c.node(), privileges...) }
}

func vmPath(vmid int) string { return "/vms/" + strconv.Itoa(vmid) }

func storagePath(name string) string { return "/storage/" + name }

// bridgePath is where a bridge of the nodes themselves stands in the access
// control lists: in a zone that every cluster has.
func bridgePath(bridge, tag string) string {
	path := "/sdn/zones/localnetwork/" + bridge
	if tag != "" {
		path += "/" + tag
	}
	return path
}

// allPrivileges are those that /access/permissions can show.
var allPrivileges = words(`Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit
	Group.Allocate Mapping.Audit Mapping.Modify Mapping.Use Permissions.Modify Pool.Allocate Pool.Audit
	Realm.Allocate Realm.AllocateUser SDN.Allocate SDN.Audit SDN.Use Sys.AccessNetwork Sys.Audit Sys.Console
	Sys.Incoming Sys.Modify Sys.PowerMgmt Sys.Syslog User.Modify VM.Allocate VM.Audit VM.Backup VM.Clone
	VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk VM.Config.HWType VM.Config.Memory
	VM.Config.Network VM.Config.Options VM.Console VM.Migrate VM.PowerMgmt VM.Snapshot VM.Snapshot.Rollback`)

func (s *Service) privileges() []string {
	if s.options.Version < 9 {
		return append([]string{"VM.Monitor"}, allPrivileges...)
	}
	return append(words("VM.GuestAgent.Audit VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt VM.GuestAgent.FileWrite VM.GuestAgent.Unrestricted VM.Replicate"), allPrivileges...)
}
