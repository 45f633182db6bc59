// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The range of VMIDs, templates and containers included.
const (
	lowestVMID  = 100
	highestVMID = 999_999_999
)

func accountFields() []backends.Field {
	return []backends.Field{
		{
			Name: "url", Type: backends.TypeString, Required: true, Check: text(checkURL),
			Description: "The cluster's API, such as `https://pve.example.com:8006`, without a path and without a trailing slash. It must be https, unless it is on this machine. Any node of the cluster will do.",
		},
		{
			Name: "token", Type: backends.TypeString, Required: true, Secret: true,
			Description: "A reference to an API token, `user@realm!name=secret`. It is resolved for every request. It needs `VM.Clone` on templates, `VM.Allocate`, `VM.Audit`, `VM.Config.*` and `VM.PowerMgmt` where VMs are made, `Datastore.AllocateSpace` on storages and `SDN.Use` on bridges; `Sys.Audit` on nodes to know what room they have, and `VM.GuestAgent.Audit` (before version 9 `VM.Monitor`) to read addresses; `Datastore.Audit` on the storage of snippets, `Pool.Audit` on the resource pool, and `Pool.Allocate` on it and on the one before where a VM is moved to another one. A token with privilege separation needs these itself, besides its user.",
		},
		{
			Name: "region", Type: backends.TypeString, Default: "pve", Check: text(checkName),
			Description: "What offers and machines report as their region: the cluster is one.",
		},
		{Name: "node", Type: backends.TypeString, Check: text(checkNode), Description: "The node that VMs are made on; unset: the node of the template."},
		{Name: "pool", Type: backends.TypeString, Check: text(checkPool), Description: "The resource pool of the cluster (not a `bettercompute_pool`) that new VMs are in; unset: none."},
		{Name: "storage", Type: backends.TypeString, Check: text(checkStorage), Description: "Where full clones have their disks; unset: where the template has them."},
		{
			Name: "full_clone", Type: backends.TypeBool, Default: true,
			Description: "Whether the template's disks are copied. `false` makes linked clones, which depend on the template and need a storage that can.",
		},
		{
			Name: "disk", Type: backends.TypeString, Default: "scsi0", Check: text(checkDisk),
			Description: "The boot disk of the templates, which is grown to an offer's size.",
		},
		{Name: "vmid_min", Type: backends.TypeInt, Default: int64(100_000_000), Check: checkVMID, Description: "The lowest VMID that VMs get."},
		{
			Name: "vmid_max", Type: backends.TypeInt, Default: int64(highestVMID), Check: checkVMID,
			Description: "The highest VMID that VMs get. An instance's VMID follows from its name, so the range should be much larger than the number of instances.",
		},
		{
			Name: "offers", Type: backends.TypeStringList, Check: text(checkOffer),
			Description: "The sizes that may be used, such as `2c-4g` (virtual CPUs and GiB of memory) or `4c-16g-100d` (and GiB of boot disk). CPUs 1 to 8192, memory 1 to 16384, disk 1 to 131072; whole numbers. Unset: any size of this form; `1c-2g`, `2c-4g`, `4c-8g` and `8c-32g` are listed.",
		},
		{
			Name: "ca_certificate", Type: backends.TypeString, Check: text(checkCA),
			Description: "The certificate authority that the cluster's certificate is held against, instead of the system's: a secret reference to it, or the certificate itself, in PEM (`file(\"pve-root-ca.pem\")`) or in DER and base64url. Written itself, it stands in the `uri`s; it is no secret. On a node it is `/etc/pve/pve-root-ca.pem`. Not together with `tls_fingerprint` or `insecure`.",
		},
		{
			Name: "tls_fingerprint", Type: backends.TypeString, Check: text(checkFingerprint),
			Description: "The SHA-256 fingerprint of the certificate that the url's host shows, in hex, with or without colons. Nothing else of the certificate is looked at. It is that of `/etc/pve/local/pveproxy-ssl.pem` where that file is there, else of `pve-ssl.pem`, and another one when the certificate is renewed. Not together with `ca_certificate` or `insecure`.",
		},
		{Name: "insecure", Type: backends.TypeBool, Default: false, Description: "Take any certificate. Whoever is between can read the token."},
		snippetsField(),
		{
			Name: "task_poll", Type: backends.TypeString, Default: "1s", Check: text(checkDuration),
			Description: "How often a running task is asked about, such as `1s`.",
		},
		{Name: "task_timeout", Type: backends.TypeString, Default: "10m", Check: text(checkDuration), Description: "How long one task may take, such as `10m`: full clones of large disks take long."},
	}
}

func snippetsField() backends.Field {
	return backends.Field{
		Name: "snippets", Type: backends.TypeObject,
		Description: "Where user data is put for VMs to read at their start: the API can't upload it. Without it, only the hostname and `ssh_keys` reach a guest.",
		Fields: []backends.Field{
			{Name: "storage", Type: backends.TypeString, Required: true, Check: text(checkStorage), Description: "The storage, with the content type snippets, that every node of the VMs reads them from: a shared one, or the same folder on all of them. The files can be read by their owner and by root only, so a share that squashes root must map it to their owner."},
			{Name: "directory", Type: backends.TypeString, Check: text(checkDirectory), Description: "The storage's folder `snippets`, as this machine has it mounted."},
			{
				Name: "sftp", Type: backends.TypeObject, Description: "How to write into the storage's folder `snippets` over SSH.",
				Fields: []backends.Field{
					{Name: "host", Type: backends.TypeString, Required: true, Check: text(checkHost), Description: "A node, or a host that has the storage, with a port if it isn't 22."},
					{Name: "user", Type: backends.TypeString, Required: true, Check: text(checkName), Description: "The user at the host."},
					{Name: "private_key", Type: backends.TypeString, Required: true, Secret: true, Description: "A reference to the user's private key in OpenSSH's or PEM form, without a passphrase."},
					{Name: "known_hosts", Type: backends.TypeString, Required: true, Check: text(checkKnownHosts), Description: "The host's key: lines of a known_hosts file, or `ssh-ed25519 AAAA…` alone, or a reference to either. It is always checked."},
					{Name: "path", Type: backends.TypeString, Required: true, Check: text(checkDirectory), Description: "The folder on the host, such as `/var/lib/vz/snippets`."},
				},
			},
		},
	}
}

func machineFields() []backends.Field {
	return []backends.Field{
		{Name: "node", Type: backends.TypeString, Check: text(checkNode), Description: "The node that the VM is made on; unset: the account's. Where it runs later is up to the cluster, so a change is recorded only."},
		{Name: "vm_id", Type: backends.TypeInt, Check: checkVMID, Description: "The VMID, from 100 to 999999999; unset: one that follows from the instance's id. A VMID that is taken is never shared. Another one replaces the VM."},
		{
			Name: "ip_config", Type: backends.TypeObjectList, Description: "The addresses of the network cards, in their order; unset: DHCP on the first. The template needs a cloud-init drive. A change restarts the VM, and cloud-init then takes its guest for a new machine: it makes new SSH host keys, and runs user data again.",
			Fields: []backends.Field{
				{Name: "ipv4", Type: backends.TypeString, Check: text(checkIPv4), Description: "An address with its prefix length, such as `10.0.0.5/24`, or `dhcp`; unset: none."},
				{Name: "gateway", Type: backends.TypeString, Check: text(checkGateway4), Description: "The IPv4 gateway."},
				{Name: "ipv6", Type: backends.TypeString, Check: text(checkIPv6), Description: "An address with its prefix length, `auto` (SLAAC) or `dhcp`; unset: none."},
				{Name: "gateway6", Type: backends.TypeString, Check: text(checkGateway6), Description: "The IPv6 gateway."},
			},
		},
		{
			Name: "dns", Type: backends.TypeObject, Description: "What the guest resolves names with; unset: what its node uses. A change is like one of `ip_config`.",
			Fields: []backends.Field{
				{Name: "servers", Type: backends.TypeStringList, Check: text(checkAddress), Description: "Addresses of name servers."},
				{Name: "domain", Type: backends.TypeString, Check: text(checkDomain), Description: "The search domain."},
			},
		},
		{
			Name: "network_devices", Type: backends.TypeObjectList, Description: "The network cards; unset: the template's, the first on the bridge that `network_id` names. Of cards that are there already, `bridge`, `vlan_id` and `firewall` are changed while the VM runs; any other change restarts it.",
			Fields: []backends.Field{
				{Name: "bridge", Type: backends.TypeString, Check: text(checkBridge), Description: "The bridge or VNet; unset: the template's, else `vmbr0`."},
				{Name: "vlan_id", Type: backends.TypeInt, Check: number(1, 4094), Description: "The VLAN tag; unset: none."},
				{Name: "mac_address", Type: backends.TypeString, Check: text(checkMAC), Description: "The MAC address; unset: one that Proxmox VE chooses."},
				{
					Name: "model", Type: backends.TypeString, Default: "virtio",
					Options: []string{"virtio", "e1000", "e1000e", "rtl8139", "vmxnet3"}, Description: "The card that the guest sees.",
				},
				{Name: "firewall", Type: backends.TypeBool, Description: "Whether the cluster's firewall filters the card; unset: it doesn't."},
				{Name: "mtu", Type: backends.TypeInt, Check: number(1, 65520), Description: "The MTU (virtio only); 1: the bridge's. Unset: 1500, or the bridge's where it is smaller."},
			},
		},
		{Name: "cpu_type", Type: backends.TypeString, Check: text(checkCPU), Description: "The CPU that the guest sees, such as `host` or `x86-64-v2-AES`; unset: the template's. A change restarts the VM."},
		{Name: "on_boot", Type: backends.TypeBool, Description: "Whether the VM starts with its node; unset: as the template."},
		{Name: "pool_id", Type: backends.TypeString, Check: text(checkPool), Description: "The resource pool of the cluster (not a `bettercompute_pool`); unset: the account's. A VM is moved into another one while it runs."},
		{Name: "tags", Type: backends.TypeStringSet, Check: text(checkTag), Description: "Tags besides those of `labels`, in lower case. Those of the template stay."},
	}
}

func text(check func(string) string) func(any) string {
	return func(value any) string {
		s, ok := value.(string)
		if !ok {
			return "" // not this check's to say
		}
		return check(s)
	}
}

func number(low, high int64) func(any) string {
	return func(value any) string {
		if n, ok := value.(int64); ok && (n < low || n > high) {
			return fmt.Sprintf("It is a number from %d to %d.", low, high)
		}
		return ""
	}
}

func checkVMID(value any) string {
	if n, ok := value.(int64); ok && (n < lowestVMID || n > highestVMID) {
		return fmt.Sprintf("A VMID is a number from %d to %d.", lowestVMID, highestVMID)
	}
	return ""
}

func checkURL(s string) string {
	if problem := backends.EndpointProblem(s, exampleURL); problem != "" {
		return strings.Replace(problem, "The endpoint", "The url", 1)
	}
	if strings.Contains(strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://"), "/api2") {
		return "The url ends before /api2, such as " + exampleURL + "."
	}
	return ""
}

// matches is a check by a form; what says what a value is.
func matches(form *regexp.Regexp, what string) func(string) string {
	return func(s string) string {
		if !form.MatchString(s) {
			return strconv.Quote(s) + " is not " + what + "."
		}
		return ""
	}
}

// The forms of Proxmox VE's own names, from its API description and source.
var (
	nodeForm    = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$`)
	storageForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9._-]*[a-zA-Z0-9]$`)
	poolForm    = regexp.MustCompile(`^[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+){0,2}$`)
	diskForm    = regexp.MustCompile(`^(?:ide[0-3]|sata[0-5]|scsi(?:[12]?\d|30)|virtio(?:\d|1[0-5]))$`)
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	bridgeForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)
	cpuForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	macForm     = regexp.MustCompile(`^[0-9A-Fa-f][02468ACEace](?::[0-9A-Fa-f]{2}){5}$`)
	domainForm  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	hostForm    = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$`)

	checkNode    = matches(nodeForm, "the name of a node: letters, digits and hyphens")
	checkStorage = matches(storageForm, "the id of a storage: a letter first, then letters, digits, dots, hyphens and underscores")
	checkPool    = matches(poolForm, "the id of a resource pool")
	checkDisk    = matches(diskForm, "a disk, such as scsi0 or virtio0")
	checkName    = matches(nameForm, "a name: letters, digits, dots, hyphens and underscores")
	checkBridge  = matches(bridgeForm, "a bridge or VNet, such as vmbr0")
	checkCPU     = matches(cpuForm, "a type of CPU, such as host or x86-64-v2-AES")
	checkMAC     = matches(macForm, "a unicast MAC address, such as bc:24:11:00:00:01")
	checkDomain  = matches(domainForm, "a domain, such as example.com")
	checkHost    = matches(hostForm, "a host, such as pve1.example.com or 10.0.0.2:2222")
)

func checkDirectory(s string) string {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "\x00\n") {
		return "It is an absolute path, such as /var/lib/vz/snippets."
	}
	return ""
}

func checkDuration(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil || d < 10*time.Millisecond || d > 24*time.Hour {
		return strconv.Quote(s) + " is not a duration from 10ms to 24h, such as 1s or 10m."
	}
	return ""
}

func checkPrefix(s string, four bool, words ...string) string {
	if slices.Contains(words, s) {
		return ""
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4() != four || p.Addr().Zone() != "" {
		example := "10.0.0.5/24"
		if !four {
			example = "2001:db8::5/64"
		}
		return fmt.Sprintf("%q is neither an address with its prefix length, such as %s, nor %s.", s, example, backends.Choice(words))
	}
	return ""
}

func checkIPv4(s string) string { return checkPrefix(s, true, "dhcp") }

func checkIPv6(s string) string { return checkPrefix(s, false, "auto", "dhcp") }

func checkFamily(s string, four bool) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4() != four || a.Zone() != "" {
		return strconv.Quote(s) + " is not an address of that family, without a prefix length."
	}
	return ""
}

func checkGateway4(s string) string { return checkFamily(s, true) }

func checkGateway6(s string) string { return checkFamily(s, false) }

func checkAddress(s string) string {
	if _, err := netip.ParseAddr(s); err != nil {
		return strconv.Quote(s) + " is not an address."
	}
	return ""
}
