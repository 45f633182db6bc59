// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

func paths(issues []*backends.Error) []string {
	var out []string
	for _, e := range issues {
		out = append(out, string(e.Code)+" "+e.Path.String())
	}
	slices.Sort(out)
	return out
}

func TestAccount(t *testing.T) {
	d := New(Options{})
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	for name, test := range map[string]struct {
		config backends.Values
		want   []string
	}{
		"plain":             {backends.Values{}, nil},
		"a cluster nearby":  {backends.Values{"url": "http://127.0.0.1:8006"}, nil},
		"http":              {backends.Values{"url": "http://pve:8006"}, []string{"INVALID_INPUT url"}},
		"userinfo":          {backends.Values{"url": "https://a:hunter2@pve:8006"}, []string{"INVALID_INPUT url"}},
		"the API's path":    {backends.Values{"url": "https://pve:8006/api2/json"}, []string{"INVALID_INPUT url"}},
		"a literal token":   {backends.Values{"token": "root@pam!x=hunter2"}, []string{"INVALID_INPUT token"}},
		"offers":            {backends.Values{"offers": []any{"2c-4g", "4c-8g-40d"}}, nil},
		"bad offers":        {backends.Values{"offers": []any{"2c", "0c-1g", "2C-4G", "2c-4g-0d", "9999999c-1g"}}, []string{"INVALID_INPUT offers[0]", "INVALID_INPUT offers[1]", "INVALID_INPUT offers[2]", "INVALID_INPUT offers[3]", "INVALID_INPUT offers[4]"}},
		"no offers":         {backends.Values{"offers": []any{}}, []string{"INVALID_INPUT offers"}},
		"range":             {backends.Values{"vmid_min": int64(200), "vmid_max": int64(100)}, []string{"INVALID_INPUT vmid_max"}},
		"range's ends":      {backends.Values{"vmid_min": int64(99), "vmid_max": int64(1_000_000_000)}, []string{"INVALID_INPUT vmid_max", "INVALID_INPUT vmid_min"}},
		"linked, storage":   {backends.Values{"full_clone": false, "storage": "nfs"}, []string{"INVALID_INPUT storage"}},
		"linked":            {backends.Values{"full_clone": false}, nil},
		"pin":               {backends.Values{"tls_fingerprint": sum}, nil},
		"half a pin":        {backends.Values{"tls_fingerprint": sum[:62]}, []string{"INVALID_INPUT tls_fingerprint"}},
		"CA":                {backends.Values{"ca_certificate": "env://CA"}, nil},
		"no CA":             {backends.Values{"ca_certificate": "AAAA"}, []string{"INVALID_INPUT ca_certificate"}},
		"pin and insecure":  {backends.Values{"tls_fingerprint": sum, "insecure": true}, []string{"INVALID_INPUT insecure"}},
		"CA and pin":        {backends.Values{"tls_fingerprint": sum, "ca_certificate": "env://CA"}, []string{"INVALID_INPUT tls_fingerprint"}},
		"pin, not insecure": {backends.Values{"tls_fingerprint": sum, "insecure": false}, nil},
		"durations":         {backends.Values{"task_poll": "0s", "task_timeout": "ten"}, []string{"INVALID_INPUT task_poll", "INVALID_INPUT task_timeout"}},
		"directory":         {backends.Values{"snippets": backends.Values{"storage": "local", "directory": "/mnt/snippets"}}, nil},
		"nowhere":           {backends.Values{"snippets": backends.Values{"storage": "local"}}, []string{"INVALID_INPUT snippets"}},
		"relative":          {backends.Values{"snippets": backends.Values{"storage": "local", "directory": "snippets"}}, []string{"INVALID_INPUT snippets.directory"}},
		"sftp": {backends.Values{"snippets": backends.Values{"storage": "local", "sftp": backends.Values{
			"host": "pve1:22", "user": "root", "private_key": "env://KEY", "known_hosts": "env://HOSTS", "path": "/var/lib/vz/snippets",
		}}}, nil},
		"sftp, literal": {backends.Values{"snippets": backends.Values{"storage": "local", "sftp": backends.Values{
			"host": "pve1", "user": "root", "private_key": "hunter2", "known_hosts": "pve1", "path": "x",
		}}}, []string{"INVALID_INPUT snippets.sftp.known_hosts", "INVALID_INPUT snippets.sftp.path", "INVALID_INPUT snippets.sftp.private_key"}},
	} {
		config := backends.Values{"url": "https://pve.test:8006", "token": "env://PROXMOX_TOKEN"}
		maps.Copy(config, test.config)
		issues := backends.Validate(d.Manifest.Account, config, nil)
		if len(issues) == 0 {
			issues = d.CheckAccount(backends.WithDefaults(d.Manifest.Account, config))
		}
		if got := paths(issues); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
		for _, e := range issues {
			if strings.Contains(e.Error()+e.Remedy, "hunter2") {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
}

func TestForm(t *testing.T) {
	c := clientOf(t, &script{})
	ip := func(v backends.Values) backends.Values { return backends.Values{"ip_config": []any{v}} }
	for name, test := range map[string]struct {
		spec backends.MachineSpec
		want []string
	}{
		"nothing":         {backends.MachineSpec{}, nil},
		"all of it":       {testSpec(), nil},
		"name":            {backends.MachineSpec{Name: "web_0"}, []string{"INVALID_INPUT name"}},
		"offer":           {backends.MachineSpec{Offer: "cx22"}, []string{"INVALID_INPUT offer"}},
		"bridge":          {backends.MachineSpec{Network: "vm br"}, []string{"INVALID_INPUT network_id"}},
		"labels":          {backends.MachineSpec{Labels: map[string]string{"Role": "web", "ok": ""}}, []string{"INVALID_INPUT labels"}},
		"tags":            {backends.MachineSpec{Options: backends.Values{"tags": []any{"bc-key-x", "ok"}}}, []string{"INVALID_INPUT proxmox.tags[0]"}},
		"user data":       {backends.MachineSpec{UserData: "#cloud-config\npackages: []"}, []string{"UNSUPPORTED "}},
		"empty user data": {backends.MachineSpec{UserData: "#cloud-config\n"}, nil},
		"addresses":       {backends.MachineSpec{Options: ip(backends.Values{"ipv4": "10.0.0.1", "ipv6": "10.0.0.1/24"})}, []string{"INVALID_INPUT proxmox.ip_config[0].ipv4", "INVALID_INPUT proxmox.ip_config[0].ipv6"}},
		"gateway":         {backends.MachineSpec{Options: ip(backends.Values{"ipv4": "dhcp", "gateway": "10.0.0.1", "gateway6": "fe80::1"})}, []string{"INVALID_INPUT proxmox.ip_config[0].gateway", "INVALID_INPUT proxmox.ip_config[0].gateway6"}},
		"unknown":         {backends.MachineSpec{Options: ip(backends.Values{"ipv4": backends.Unknown, "gateway": "10.0.0.1"})}, nil},
		"two bridges": {backends.MachineSpec{Network: "a1", Options: backends.Values{"network_devices": []any{backends.Values{"bridge": "b1"}}}},
			[]string{"INVALID_INPUT proxmox.network_devices[0].bridge"}},
		"device": {backends.MachineSpec{Options: backends.Values{"network_devices": []any{backends.Values{"vlan_id": int64(4095), "mac_address": "01:00:00:00:00:00", "model": "ne2000"}}}},
			[]string{"INVALID_INPUT proxmox.network_devices[0].mac_address", "INVALID_INPUT proxmox.network_devices[0].model", "INVALID_INPUT proxmox.network_devices[0].vlan_id"}},
		"mtu": {backends.MachineSpec{Options: backends.Values{"network_devices": []any{
			backends.Values{"mtu": int64(1400)}, backends.Values{"mtu": int64(1400), "model": "virtio"}, backends.Values{"mtu": int64(1400), "model": "e1000"},
		}}}, []string{"INVALID_INPUT proxmox.network_devices[2].mtu"}},
		"vmid": {backends.MachineSpec{Options: backends.Values{"vm_id": int64(99)}}, []string{"INVALID_INPUT proxmox.vm_id"}},
	} {
		if got := paths(c.CheckForm(test.spec)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCheckMachine(t *testing.T) {
	for name, test := range map[string]struct {
		account  backends.Values
		change   func(*backends.MachineSpec)
		want     []string
		image    string
		warnings int
		remedy   string
	}{
		"by name":             {change: func(*backends.MachineSpec) {}, image: "9000"},
		"by VMID":             {change: func(s *backends.MachineSpec) { s.Image = "9001" }, image: "9001"},
		"by node and VMID":    {change: func(s *backends.MachineSpec) { s.Image = "pve2/9002" }, image: "9002"},
		"on another node":     {change: func(s *backends.MachineSpec) { s.Image = "pve2/9000" }, want: []string{"INVALID_INPUT image"}, remedy: "pve1/9000"},
		"ambiguous":           {change: func(s *backends.MachineSpec) { s.Image = "ubuntu-24.04" }, want: []string{"INVALID_INPUT image"}, remedy: "pve1/9001 or pve2/9002"},
		"the target's":        {account: backends.Values{"node": "pve2"}, change: func(s *backends.MachineSpec) { s.Image = "ubuntu-24.04" }, image: "9002"},
		"the instance's node": {account: backends.Values{"node": "pve2"}, change: func(s *backends.MachineSpec) { s.Image, s.Options = "ubuntu-24.04", backends.Values{"node": "pve1"} }, image: "9001"},
		"unknown":             {change: func(s *backends.MachineSpec) { s.Image = "debian-12" }, want: []string{"INVALID_INPUT image"}, remedy: "debian-13"},
		"a container":         {change: func(s *backends.MachineSpec) { s.Image = "150" }, want: []string{"INVALID_INPUT image"}},
		"no such VMID":        {change: func(s *backends.MachineSpec) { s.Image = "4000" }, want: []string{"INVALID_INPUT image"}},
		"disk kept":           {change: func(s *backends.MachineSpec) { s.Offer = "1c-1g-2d" }, image: "9000", warnings: 1},
		"no cloud-init": {change: func(s *backends.MachineSpec) {
			s.Image, s.SSHKeys, s.Options = "9003", []string{"ssh-ed25519 A"}, static(1)
		}, want: []string{"INVALID_INPUT proxmox.ip_config", "INVALID_INPUT ssh_keys"}, image: "9003"},
		"no cloud-init needed":       {change: func(s *backends.MachineSpec) { s.Image = "9003" }, image: "9003", warnings: 1},
		"region":                     {change: func(s *backends.MachineSpec) { s.Region = "fra1" }, want: []string{"INVALID_INPUT region"}, image: "9000"},
		"not listed":                 {account: backends.Values{"offers": []any{"1c-1g"}}, change: func(*backends.MachineSpec) {}, want: []string{"INVALID_INPUT offer"}, image: "9000", remedy: "1c-1g"},
		"no room":                    {change: func(s *backends.MachineSpec) { s.Offer = "2c-61g" }, want: []string{"CAPACITY_UNAVAILABLE offer"}, image: "9000"},
		"no such node":               {change: func(s *backends.MachineSpec) { s.Options = backends.Values{"node": "pve9"} }, want: []string{"INVALID_INPUT proxmox.node"}, image: "9000", remedy: "pve1 or pve2"},
		"another disk":               {account: backends.Values{"disk": "virtio0"}, change: func(*backends.MachineSpec) {}, want: []string{"INVALID_INPUT image"}, image: "9000"},
		"user data":                  {account: snippetsIn("local"), change: withUserData, image: "9000", warnings: 1},
		"user data, pinned":          {account: backends.Values{"node": "pve1", "snippets": snippetsIn("local")["snippets"]}, change: withUserData, image: "9000"},
		"user data, shared":          {account: snippetsIn(emulated.SnippetsStorage), change: withUserData, image: "9000"},
		"user data, no such storage": {account: snippetsIn("nosuch"), change: withUserData, want: []string{"INVALID_CONFIG "}, image: "9000", remedy: "local or snippets"},
		"user data, wrong content":   {account: snippetsIn("shared"), change: withUserData, want: []string{"INVALID_CONFIG "}, image: "9000", remedy: "local or snippets"},
		"user data, no folder": {account: backends.Values{"snippets": backends.Values{"storage": emulated.SnippetsStorage, "directory": "/nosuch"}}, change: withUserData,
			want: []string{"INVALID_CONFIG "}, image: "9000", remedy: "mounted here"},
		"no snippet needed": {account: backends.Values{"snippets": backends.Values{"storage": "nosuch", "directory": "/nosuch"}}, change: func(*backends.MachineSpec) {}, image: "9000"},
		"bridges": {change: func(s *backends.MachineSpec) {
			s.Network = "vmbr0"
			s.Options = backends.Values{"network_devices": []any{backends.Values{"bridge": "vmbr0"}, backends.Values{"bridge": "vmbr1"}, backends.Values{}}}
		}, want: []string{"INVALID_INPUT proxmox.network_devices[1].bridge"}, image: "9000", remedy: "vmbr0"},
		"network_id":       {change: func(s *backends.MachineSpec) { s.Network = "nosuch" }, want: []string{"INVALID_INPUT network_id"}, image: "9000"},
		"storage":          {account: backends.Values{"storage": "local-lvm"}, change: func(*backends.MachineSpec) {}, image: "9000"},
		"no such storage":  {account: backends.Values{"storage": "nosuch"}, change: func(*backends.MachineSpec) {}, want: []string{"INVALID_CONFIG "}, image: "9000", remedy: "local-lvm or shared"},
		"storage of files": {account: backends.Values{"storage": "local"}, change: func(*backends.MachineSpec) {}, want: []string{"INVALID_CONFIG "}, image: "9000"},
		"disk too large":   {change: func(s *backends.MachineSpec) { s.Offer = "2c-4g-4001d" }, want: []string{"CAPACITY_UNAVAILABLE offer"}, image: "9000"},
		"disk fits":        {change: func(s *backends.MachineSpec) { s.Offer = "2c-4g-4000d" }, image: "9000"},
		"pool":             {account: backends.Values{"pool": "tofu"}, change: func(*backends.MachineSpec) {}, image: "9000"},
		"no such pool":     {account: backends.Values{"pool": "nosuch"}, change: func(*backends.MachineSpec) {}, want: []string{"INVALID_INPUT "}, image: "9000", remedy: "tofu"},
		"no such pool_id": {account: backends.Values{"pool": "tofu"}, change: func(s *backends.MachineSpec) { s.Options = backends.Values{"pool_id": "nosuch"} },
			want: []string{"INVALID_INPUT proxmox.pool_id"}, image: "9000"},
		"a container's VMID": {change: func(s *backends.MachineSpec) { s.Options = backends.Values{"vm_id": int64(150)} }, want: []string{"CONFLICT proxmox.vm_id"}, image: "9000"},
		"a template's VMID":  {change: func(s *backends.MachineSpec) { s.Options = backends.Values{"vm_id": int64(9001)} }, want: []string{"CONFLICT proxmox.vm_id"}, image: "9000"},
		"a free VMID":        {change: func(s *backends.MachineSpec) { s.Options = backends.Values{"vm_id": int64(151)} }, image: "9000"},
		"linked elsewhere":   {account: backends.Values{"full_clone": false, "node": "pve2"}, change: func(*backends.MachineSpec) {}, image: "9000", warnings: 1},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				c, _ := emulate(t, emulated.Options{Snippets: folder}, test.account, inFolder(test.account, folder))
				spec := testSpec()
				test.change(&spec)
				got, issues, err := c.CheckMachine(t.Context(), spec)
				if err != nil || !slices.Equal(paths(issues), test.want) || got.ImageID != test.image || len(got.Warnings) != test.warnings {
					t.Errorf("%+v, %v, %v", got, issues, err)
				}
				if test.remedy != "" && (len(issues) == 0 || !strings.Contains(issues[0].Remedy, test.remedy)) {
					t.Errorf("%v", issues)
				}
			})
		})
	}
}

func snippetsIn(storage string) backends.Values {
	return backends.Values{"snippets": backends.Values{"storage": storage, "directory": "/mnt/snippets"}}
}

// inFolder is an account's snippets in a folder that is there.
func inFolder(account backends.Values, folder string) backends.Values {
	snippets := account.Object("snippets")
	if snippets.String("directory") != "/mnt/snippets" {
		return nil
	}
	return backends.Values{"snippets": backends.Values{"storage": snippets.String("storage"), "directory": folder}}
}

func withUserData(s *backends.MachineSpec) { s.UserData = "#!/bin/sh\ntrue\n" }

// TestTemplatesUserData warns that hostname and keys don't reach the guest.
func TestTemplatesUserData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		cluster.SetOption(9000, "cicustom", "user=local:snippets/theirs.yaml")
		got, issues, err := c.CheckMachine(t.Context(), testSpec())
		if err != nil || len(issues) > 0 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "theirs.yaml") {
			t.Errorf("%+v, %v, %v", got, issues, err)
		}
	})
}

// TestTaggedTemplate refuses a template whose clones would look complete.
func TestTaggedTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		cluster.SetOption(9000, "tags", "better-compute;debian")
		_, issues, err := c.CheckMachine(t.Context(), testSpec())
		if err != nil || !slices.Equal(paths(issues), []string{"INVALID_INPUT image"}) {
			t.Errorf("%v, %v", issues, err)
		}
		_, err = c.MakeMachine(t.Context(), testSpec())
		wantCode(t, err, backends.InvalidInput)
		if n := len(cluster.Machines()); n != 0 {
			t.Errorf("%d VMs", n)
		}
	})
}

// TestOffers lists the account's sizes and, without any, the specification's.
func TestOffers(t *testing.T) {
	for name, test := range map[string]struct {
		account backends.Values
		options emulated.Options
		want    string
	}{
		"defaults":     {want: "1c-2g:true 2c-4g:true 4c-8g:true 8c-32g:true"},
		"configured":   {account: backends.Values{"offers": []any{"2c-4g-40d", "2c-61g", "32c-1g"}}, want: "2c-4g-40d:true 2c-61g:false 32c-1g:false"},
		"no Sys.Audit": {account: backends.Values{"offers": []any{"32c-1g"}}, options: emulated.Options{Denials: emulated.Denials{{Path: "/nodes", Privilege: "Sys.Audit"}}}, want: "32c-1g:true"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := emulate(t, test.options, test.account)
			offers, err := c.Offers(t.Context(), backends.OfferQuery{})
			var got []string
			for _, o := range offers {
				if o.Region != "pve" || o.PricePerHour != nil || o.Kind != backends.KindVPS || o.VCPU == 0 || o.MemoryGiB == 0 {
					t.Errorf("%+v", o)
				}
				got = append(got, fmt.Sprintf("%s:%v", o.ID, o.Available))
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{}, backends.Values{"node": "pve2"})
		cluster.SetNode("pve2", false)
		offers, err := c.Offers(t.Context(), backends.OfferQuery{MinVCPU: 8})
		if err != nil || len(offers) != 1 || offers[0].Available {
			t.Errorf("%v, %v", offers, err)
		}
	})
}
