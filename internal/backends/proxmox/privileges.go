// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// privileges are those that the token has on a path; nil where that isn't known.
type privileges map[string]scalar

// fetchPrivileges asks what the token may do on a path, which every token may know of
// itself.
func (c *Client) fetchPrivileges(ctx context.Context, path string) (privileges, error) {
	all, err := call[map[string]privileges](ctx, c, backends.Idempotent, "Reading what the token may do",
		request{http.MethodGet, at("access", "permissions"), url.Values{"path": {path}}}, nil)
	return all[path], err
}

// sees tells whether the token is known to have one of the privileges on a path.
func (c *Client) sees(ctx context.Context, path string, anyOf ...string) bool {
	has, err := c.allowed.Get(ctx, path)
	return err == nil && has.hasAny(anyOf...)
}

func (p privileges) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, has := p[name]; return has })
}

// need is a privilege, or one of several, on one of some paths.
type need struct {
	paths []string
	anyOf []string
}

// optionRule is a privilege, or one of several, for some options.
type optionRule struct {
	options *regexp.Regexp
	anyOf   []string
}

// optionNeeds are the privileges for options that aren't VM.Config.Options' (the
// source of qemu-server, check_vm_modify_config_perm).
var optionNeeds = []optionRule{
	{regexp.MustCompile(`^(?:cores|sockets|vcpus|cpu)$`), []string{"VM.Config.CPU"}},
	{regexp.MustCompile(`^(?:memory|balloon)$`), []string{"VM.Config.Memory"}},
	{regexp.MustCompile(`^net\d+$`), []string{"VM.Config.Network"}},
	{regexp.MustCompile(`^(?:ipconfig\d+|nameserver|searchdomain|sshkeys|cicustom)$`), []string{"VM.Config.Cloudinit", "VM.Config.Network"}},
}

// needs are the privileges for making a VM from a template: those for the clone, for
// the options that it will lack, and for its start.
func (c *Client) needs(spec backends.MachineSpec, template *vm) []need {
	// Rights to a VM come from its resource pool and from all VMs alike.
	where := []string{"/vms"}
	if pool := cmp.Or(spec.Options.String("pool_id"), c.account.pool); pool != "" {
		where = []string{"/pool/" + pool, "/vms"}
	}
	out := []need{{[]string{template.aclPath()}, []string{"VM.Clone"}}}
	for _, privilege := range []string{"VM.Allocate", "VM.Audit", "VM.Config.Options"} {
		out = append(out, need{where, []string{privilege}})
	}
	var files []snippet
	if hasUserData(spec) && c.snippets != nil {
		files = []snippet{{part: "user"}}
	}
	options := c.desired(template.config, template.vmid, spec, c.noteFor(spec, template), files)
	for _, rule := range optionNeeds {
		for name := range options {
			if rule.options.MatchString(name) {
				out = append(out, need{where, rule.anyOf})
				break
			}
		}
	}
	if size, err := c.grown(template.config, spec.Offer); err == nil && size > 0 {
		out = append(out, need{where, []string{"VM.Config.Disk"}})
	}
	if spec.Start {
		out = append(out, need{where, []string{"VM.PowerMgmt"}})
	}
	storage := c.account.storage
	if storage == "" {
		storage = storageOf(properties(template.config.get(c.account.disk), "file").get("file"))
	}
	if storage != "" {
		out = append(out, need{[]string{"/storage/" + storage}, []string{"Datastore.AllocateSpace"}})
	}
	return out
}

func (v *vm) aclPath() string { return "/" + at("vms", v.vmid) }

// has tells whether the token has what is needed, as far as that can be known.
func (c *Client) has(ctx context.Context, n need) (bool, error) {
	for _, path := range n.paths {
		has, err := c.allowed.Get(ctx, path)
		switch {
		case silent(err) || err == nil && has == nil:
			return true, nil
		case err != nil:
			return false, err
		case has.hasAny(n.anyOf...):
			return true, nil
		}
	}
	return false, nil
}

// checkPrivileges reports what the token lacks to make a VM, all of it at once.
func (c *Client) checkPrivileges(ctx context.Context, spec backends.MachineSpec, template *vm) ([]*backends.Error, error) {
	return c.lacking(ctx, c.needs(spec, template))
}

// lacking reports what the token doesn't have of what is needed, all of it at once.
func (c *Client) lacking(ctx context.Context, needed []need) ([]*backends.Error, error) {
	var issues []*backends.Error
	missing := map[string][]string{}
	var paths []string
	for _, n := range needed {
		has, err := c.has(ctx, n)
		if err != nil {
			return nil, err
		}
		if has {
			continue
		}
		path := n.paths[0]
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		missing[path] = append(missing[path], strings.Join(n.anyOf, " or "))
	}
	for _, path := range paths {
		e := backends.Errorf(backends.ProviderError, "The account's token lacks %s on %s.", strings.Join(missing[path], ", "), path).
			WithRemedy("Grant it there, or above (Datacenter, Permissions).%s", separation)
		e.Reason = backends.ReasonPermission
		issues = append(issues, e)
	}
	return issues, nil
}

// optionPrivileges are the privileges on a VM for a change of options, each once.
func optionPrivileges(path string, options []string) []need {
	var out []need
	others := false
	for _, rule := range optionNeeds {
		if slices.ContainsFunc(options, rule.options.MatchString) {
			out = append(out, need{[]string{path}, rule.anyOf})
		}
	}
	for _, name := range options {
		others = others || !slices.ContainsFunc(optionNeeds, func(rule optionRule) bool { return rule.options.MatchString(name) })
	}
	if others {
		out = append(out, need{[]string{path}, []string{"VM.Config.Options"}})
	}
	return out
}
