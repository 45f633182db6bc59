// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// maxSnippet is the largest file that a VM's start reads, in bytes.
const maxSnippet = 1 << 20

// CheckMachine implements [backends.Backend]. It reads the nodes and, for the image,
// the cluster's list and the template's options: each once in a while for all
// machines of a plan.
func (c *Client) CheckMachine(ctx context.Context, spec backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	issues := c.CheckForm(spec)
	var out backends.Resolved
	var nodes []nodeRow
	var template *vm
	var badImage *backends.Error // no failure of the check: one of its findings
	target := c.target(spec)
	group, groupCtx := errgroup.WithContext(ctx)
	if spec.Offer != "" || target != "" {
		group.Go(func() (err error) {
			nodes, err = c.room.Get(groupCtx)
			return err
		})
	}
	if spec.Image != "" {
		group.Go(func() (err error) {
			template, badImage, err = c.template(groupCtx, spec.Image, target)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, issues, err
	}
	if spec.Region != "" && spec.Region != c.account.region {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "There is no region %q: the account's is %q.",
			spec.Region, c.account.region).At("region").
			WithRemedy("Leave region out. Where in the cluster a VM is made is proxmox.node."))
	}
	var wanted size
	if spec.Offer != "" {
		where := target
		if where == "" && template != nil {
			where = template.node
		}
		offer, s, issue := c.checkSize(spec.Offer, nodes, where)
		out.Offer, wanted = offer, s
		if issue != nil {
			issues = append(issues, issue)
		}
	}
	if taken, err := c.checkFree(ctx, spec); err != nil {
		return out, issues, err
	} else if taken != nil {
		issues = append(issues, taken)
	}
	if badImage != nil || template == nil {
		if badImage != nil {
			issues = append(issues, badImage)
		}
		return out, issues, nil
	}
	out.ImageID = strconv.Itoa(template.vmid)
	found, warnings := c.checkFit(spec, template, wanted)
	issues = append(issues, found...)
	out.Warnings = warnings
	found, storages, err := c.checkPlaces(ctx, spec, template, wanted)
	if err != nil {
		return out, issues, err
	}
	if warning := c.checkSnippets(storages, target); hasUserData(spec) && warning != "" {
		out.Warnings = append(out.Warnings, warning)
	}
	return out, append(issues, found...), nil
}

// checkPlaces looks for what else of the cluster a wish needs: storages, bridges, a
// resource pool, and the token's right to all of it.
func (c *Client) checkPlaces(ctx context.Context, spec backends.MachineSpec, template *vm, wanted size) (
	[]*backends.Error, []storageRow, error) {
	node := cmp.Or(c.target(spec), template.node)
	var bridges, places, rights []*backends.Error
	var pool *backends.Error
	var storages []storageRow
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		bridges, err = c.checkBridges(groupCtx, spec, node)
		return err
	})
	group.Go(func() (err error) {
		places, storages, err = c.checkStorages(groupCtx, spec, template, node, wanted)
		return err
	})
	group.Go(func() (err error) {
		pool, err = c.checkPoolOf(groupCtx, spec)
		return err
	})
	group.Go(func() (err error) {
		rights, err = c.checkPrivileges(groupCtx, spec, template)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	issues := slices.Concat(bridges, places)
	if pool != nil {
		issues = append(issues, pool) // whose rights are none
		rights = slices.DeleteFunc(rights, func(e *backends.Error) bool { return strings.Contains(e.Message, " on /pool/") })
	}
	if hasUserData(spec) && c.snippets != nil {
		if missing := c.checkFolder(); missing != nil {
			issues = append(issues, missing)
		}
	}
	return append(issues, rights...), storages, nil
}

// checkFit holds a wish against its template.
func (c *Client) checkFit(spec backends.MachineSpec, template *vm, wanted size) (issues []*backends.Error, warnings []string) {
	if spec.Offer != "" {
		have, ok := template.config.diskSize(c.account.disk)
		switch {
		case !ok:
			issues = append(issues, c.noDisk(template))
		case wanted.diskGiB > 0 && have > wanted.diskGiB*gib:
			warnings = append(warnings, fmt.Sprintf("The disk of the template %d has %s, more than the %d GiB of the offer %s: it is kept, since disks are never shrunk.",
				template.vmid, sizeText(have), wanted.diskGiB, spec.Offer))
		}
	}
	if drive, _ := template.config.cloudInit(); drive == "" {
		for _, input := range needsCloudInit(spec) {
			issues = append(issues, backends.Errorf(backends.InvalidInput,
				"The template %d has no cloud-init drive, so that %s has no effect.", template.vmid, input.path).At(input.at...).
				WithRemedy("Add a cloud-init drive to the template, or leave %s out.", input.path))
		}
		if len(issues) == 0 {
			warnings = append(warnings, fmt.Sprintf("The template %d has no cloud-init drive: the guest isn't told its hostname.", template.vmid))
		}
	}
	if custom := properties(template.config.get("cicustom"), "user").get("user"); custom != "" && !hasUserData(spec) {
		warnings = append(warnings, fmt.Sprintf("The template %d has user data of its own (%s), instead of which the guest gets neither its hostname nor ssh_keys.",
			template.vmid, custom))
	}
	if !c.account.full && c.target(spec) != "" && c.target(spec) != template.node {
		warnings = append(warnings, fmt.Sprintf("A linked clone of the template %d, which is on the node %s, can only be made on %s if its disks are on shared storage.",
			template.vmid, template.node, c.target(spec)))
	}
	return issues, warnings
}

// checkSnippets warns of files that not all nodes can read. Which node's folder they
// are written to isn't known, so an account or instance that names a node is trusted.
func (c *Client) checkSnippets(storages []storageRow, target string) string {
	name := c.account.snippets.String("storage")
	var nodes []string
	for _, row := range storages {
		if row.Storage == name && !row.Shared.isTrue() {
			nodes = append(nodes, row.Node)
		}
	}
	if len(nodes) < 2 || target != "" {
		return ""
	}
	slices.Sort(nodes)
	return fmt.Sprintf("The storage %s of the account's snippets isn't shared: each of %s has its own. A VM starts only on the node that user data is written to, unless the folder is the same on all of them.",
		name, strings.Join(nodes, ", "))
}

// noDisk is the issue of a template without the account's boot disk.
func (c *Client) noDisk(template *vm) *backends.Error {
	return backends.Errorf(backends.InvalidInput, "The template %d has no disk %s.", template.vmid, c.account.disk).At("image").
		WithRemedy("Set the account's disk to the template's boot disk.")
}

func sizeText(bytes int64) string {
	if bytes%gib == 0 {
		return fmt.Sprintf("%d GiB", bytes/gib)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

type input struct {
	path string
	at   backends.Path // nil for what no message may point at
}

// needsCloudInit are the inputs of a wish that reach the guest by cloud-init only.
func needsCloudInit(spec backends.MachineSpec) []input {
	var out []input
	if len(spec.SSHKeys) > 0 {
		out = append(out, input{"ssh_keys", backends.Path{"ssh_keys"}})
	}
	if hasUserData(spec) {
		out = append(out, input{"user_data", nil})
	}
	for _, name := range []string{"ip_config", "dns"} {
		if spec.Options.Has(name) {
			out = append(out, input{attribute + "." + name, backends.Path{attribute, name}})
		}
	}
	return out
}

// hasUserData tells whether a wish has user data that says anything.
func hasUserData(spec backends.MachineSpec) bool {
	return strings.TrimSpace(spec.UserData) != "" && strings.TrimSpace(spec.UserData) != "#cloud-config"
}

// CheckForm implements [backends.Backend]. The options are held against the manifest
// again: what a plan didn't know was checked by nobody yet.
func (c *Client) CheckForm(spec backends.MachineSpec) []*backends.Error {
	issues := backends.Validate(machineFields(), spec.Options, backends.Path{attribute})
	add := func(e *backends.Error) {
		if e != nil {
			issues = append(issues, e)
		}
	}
	invalid := func(problem string, path ...any) {
		if problem != "" {
			add(backends.Errorf(backends.InvalidInput, "%s", problem).At(path...))
		}
	}
	if problem := backends.HostnameProblem(spec.Name); spec.Name != "" && problem != "" {
		invalid(fmt.Sprintf("The name %q can't be used. %s", spec.Name, problem), "name")
	}
	if spec.Network != "" {
		invalid(checkBridge(spec.Network), "network_id")
	}
	invalid(checkSpecSize(spec.Offer), "offer")
	add(checkCards(spec))
	issues = append(issues, checkMTU(spec.Options)...)
	issues = append(issues, checkAddresses(spec.Options)...)
	issues = append(issues, checkLabels(spec.Labels)...)
	return append(issues, c.checkUserData(spec)...)
}

func checkSpecSize(offer string) string {
	if offer == "" {
		return ""
	}
	return checkOffer(offer)
}

// checkCards refuses two answers to one question.
func checkCards(spec backends.MachineSpec) *backends.Error {
	cards := spec.Options.List("network_devices")
	if spec.Network == "" || len(cards) == 0 {
		return nil
	}
	if first, ok := cards[0].(backends.Values); ok && first.Has("bridge") && first.String("bridge") != spec.Network {
		return backends.Errorf(backends.InvalidInput, "network_id and the first network device name two bridges.").
			At(attribute, "network_devices", 0, "bridge").WithRemedy("Leave one of them out.")
	}
	return nil
}

// checkMTU refuses an MTU that no other card than virtio's has.
func checkMTU(options backends.Values) []*backends.Error {
	var issues []*backends.Error
	for i, e := range options.List("network_devices") {
		device, ok := e.(backends.Values)
		if model := device.String("model"); ok && device.Has("mtu") && model != "" && model != "virtio" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "Only cards of the model virtio have an mtu, and this one's is %s.", model).
				At(attribute, "network_devices", i, "mtu").WithRemedy("Leave mtu out, or set model = \"virtio\"."))
		}
	}
	return issues
}

// checkAddresses refuses gateways that nothing would use: Proxmox VE takes none
// without an address of its family.
func checkAddresses(options backends.Values) []*backends.Error {
	var issues []*backends.Error
	for i, e := range options.List("ip_config") {
		config, ok := e.(backends.Values)
		if !ok {
			continue
		}
		for _, pair := range [][2]string{{"gateway", "ipv4"}, {"gateway6", "ipv6"}} {
			address := config.String(pair[1])
			if config.Has(pair[0]) && !backends.IsUnknown(config[pair[1]]) && !strings.Contains(address, "/") {
				issues = append(issues, backends.Errorf(backends.InvalidInput, "%s needs a static %s address.", pair[0], pair[1]).
					At(attribute, "ip_config", i, pair[0]).WithRemedy("Set %s to an address with its prefix length, or leave %s out.", pair[1], pair[0]))
			}
		}
	}
	return issues
}

// checkLabels refuses labels whose tags Proxmox VE would write otherwise: it has
// lower case only.
func checkLabels(labels map[string]string) []*backends.Error {
	var issues []*backends.Error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problem := checkTag(labelTag(key, labels[key])); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "The label %q can't be a tag: %s", key, problem).At("labels").
				WithRemedy("A label is written as the tag key.value, or as the key alone where the value is empty."))
		}
	}
	return issues
}

// checkUserData names no input: a CLI would print the source line of user_data
// (DESIGN.md §5).
func (c *Client) checkUserData(spec backends.MachineSpec) []*backends.Error {
	if !hasUserData(spec) {
		return nil
	}
	if c.snippets == nil {
		return []*backends.Error{backends.Errorf(backends.Unsupported,
			"Proxmox VE has no way to take user data by its API, and the account has no snippets.").
			WithRemedy("Set snippets in the account's proxmox, or leave user_data out: the hostname and ssh_keys need none.")}
	}
	data, err := spec.CloudInit()
	switch {
	case err != nil:
		if e := backends.AsError(err); e != nil {
			return []*backends.Error{e}
		}
		return []*backends.Error{backends.Errorf(backends.InvalidInput, "The user data can't be joined with ssh_keys.")}
	case len(data) > maxSnippet:
		return []*backends.Error{backends.Errorf(backends.InvalidInput,
			"The user data is too long: with the hostname and ssh_keys it is %d bytes, and Proxmox VE takes %d (1 MiB).", len(data), maxSnippet)}
	}
	return nil
}
