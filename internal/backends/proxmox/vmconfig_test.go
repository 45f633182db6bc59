// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// TestConfigOfBothVersions reads options as versions 8 and 9 write them.
func TestConfigOfBothVersions(t *testing.T) {
	for _, text := range []string{
		`{"cores":2,"sockets":2,"memory":"4096","agent":"enabled=1,fstrim_cloned_disks=1","template":1,"onboot":1,"digest":"d"}`,
		`{"cores":"2","sockets":"2","memory":4096,"agent":1,"template":"1","onboot":true,"digest":"d"}`,
		`{"cores":2,"sockets":2,"memory":"current=4096","agent":"1","template":1,"onboot":"1","balloon":null,"digest":"d"}`,
	} {
		var c vmConfig
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if c.cpus() != 4 || c.memoryMiB() != 4096 || !c.hasAgent() || !c.isTemplate() || !c["onboot"].isTrue() {
			t.Errorf("%v", c)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"10G": 10 * gib, "3584M": 3584 << 20, "1T": 1 << 40, "4194304K": 4 * gib, "1024": 1024, "": 0, "G": 0, "-1G": 0, "9999999999999T": 0,
	} {
		if got := parseSize(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	c := vmConfig{"scsi0": "local-lvm:vm-1-disk-0,discard=on,size=32G", "virtio0": "file=x:1/vm.qcow2,size=5G"}
	if got, ok := c.diskSize("scsi0"); !ok || got != 32*gib {
		t.Error(got, ok)
	}
	if _, ok := c.diskSize("scsi1"); ok {
		t.Error("a disk that isn't there")
	}
}

func TestCloudInitDrive(t *testing.T) {
	for text, want := range map[string]string{
		"local-lvm:vm-100-cloudinit,media=cdrom,size=4M": "local-lvm", "nfs:100/vm-100-cloudinit.qcow2,media=cdrom": "nfs",
		"file=local-lvm:cloudinit": "local-lvm", "local:iso/debian.iso,media=cdrom": "", "none,media=cdrom": "", "local-lvm:vm-100-disk-0": "",
	} {
		if _, storage := (vmConfig{"ide2": scalar(text)}).cloudInit(); storage != want {
			t.Errorf("%s: %q", text, storage)
		}
	}
}

func TestCards(t *testing.T) {
	config := vmConfig{"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1", "net1": "e1000=BC:24:11:00:00:02,bridge=vmbr1"}
	device := func(v backends.Values) backends.MachineSpec {
		return backends.MachineSpec{Options: backends.Values{"network_devices": []any{v}}}
	}
	for name, test := range map[string]struct {
		spec backends.MachineSpec
		want map[string]string
	}{
		"hands off":        {backends.MachineSpec{}, nil},
		"the same bridge":  {backends.MachineSpec{Network: "vmbr0"}, nil},
		"another bridge":   {backends.MachineSpec{Network: "lan"}, map[string]string{"net0": "virtio=BC:24:11:00:00:01,firewall=1,bridge=lan"}},
		"all of it":        {device(backends.Values{"bridge": "lan", "vlan_id": int64(7), "mac_address": "bc:24:11:00:00:09", "model": "e1000", "firewall": false, "mtu": int64(9000)}), map[string]string{"net0": "e1000=bc:24:11:00:00:09,bridge=lan,tag=7,firewall=0,mtu=9000"}},
		"nothing new":      {device(backends.Values{"model": "virtio", "mac_address": "bc:24:11:00:00:01", "firewall": true}), nil},
		"one more, no MAC": {backends.MachineSpec{Options: backends.Values{"network_devices": []any{backends.Values{"model": "virtio"}, backends.Values{"model": "e1000"}, backends.Values{"model": "virtio", "bridge": "lan"}}}}, map[string]string{"net2": "model=virtio,bridge=lan"}},
	} {
		got := cards(config, test.spec)
		if len(got) != len(test.want) {
			t.Errorf("%s: %v", name, got)
		}
		for card, text := range test.want {
			if !properties(got[card], "model").same(properties(text, "model")) {
				t.Errorf("%s: %s is %q, want %q", name, card, got[card], text)
			}
		}
	}
}

func TestKeysAreEncoded(t *testing.T) {
	keys := []string{"ssh-ed25519 AAAA+/= me@here", " ssh-rsa BBBB \n"}
	got := encodeKeys(keys)
	if strings.ContainsAny(got, "+ @/=\n") {
		t.Errorf("%q", got)
	}
	if back, err := url.PathUnescape(got); err != nil || back != "ssh-ed25519 AAAA+/= me@here\nssh-rsa BBBB" {
		t.Errorf("%q, %v", back, err)
	}
}

func TestAnonymous(t *testing.T) {
	for name, test := range map[string]struct {
		config vmConfig
		want   bool
	}{
		"a clone's first file": {vmConfig{"lock": "clone", "description": "qmclone temporary file", "digest": "d"}, true},
		"being destroyed":      {vmConfig{"lock": "destroyed", "digest": "d"}, true},
		"a clone with a name":  {vmConfig{"lock": "clone", "name": "x"}, false},
		"backed up":            {vmConfig{"lock": "backup"}, false},
		"nobody's":             {vmConfig{}, false},
	} {
		if got := test.config.isAnonymous(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("virtio=BC:24:11:00:00:01,bridge=vmbr0", "10G", `"x"`)
	f.Add("a,b=c,,=d", "1.5T", `12`)
	f.Fuzz(func(t *testing.T, text, size, data string) {
		l := properties(text, "model")
		if !l.same(properties(l.String(), "model")) && !strings.Contains(text, "=") {
			t.Errorf("%q becomes %q", text, l.String())
		}
		if parseSize(size) < 0 {
			t.Errorf("%q is %d bytes", size, parseSize(size))
		}
		var s scalar
		if json.Unmarshal([]byte(data), &s) == nil {
			_ = s.number()
		}
		_, _, _ = card(text)
		(vmConfig{"ide2": scalar(text), "memory": scalar(size)}).cloudInit()
	})
}

func FuzzOffer(f *testing.F) {
	for _, s := range []string{"2c-4g", "4c-16g-100d", "0c-1g", "1c-2g-", "999999c-1g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseOffer(s)
		if ok && got.String() != s {
			t.Errorf("%q is read as %q", s, got)
		}
		if ok && (got.cpus < 1 || got.memoryGiB < 1) {
			t.Errorf("%q is %+v", s, got)
		}
	})
}

func TestOfferOf(t *testing.T) {
	for name, test := range map[string]struct {
		madeAs       string
		cpus, memory int64
		want         string
	}{
		"as made":         {"2c-4g-20d", 2, 4 * gib, "2c-4g-20d"},
		"resized":         {"2c-4g-20d", 4, 4 * gib, "4c-4g"},
		"never ours":      {"", 2, 4 * gib, "2c-4g"},
		"an odd memory":   {"", 1, gib + gib/2, "1c-1.50g"},
		"nothing is said": {"2c-4g", 0, 0, "2c-4g"},
		"nothing known":   {"", 0, 0, ""},
	} {
		if got := offerOf(note{offer: test.madeAs, marks: backends.Marks{Complete: true}}, test.cpus, test.memory, 0); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
