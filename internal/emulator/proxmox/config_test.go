// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

const vm = "/nodes/pve1/qemu/101"

// stopped is a service with one stopped VM, 101, a full clone of debian-13.
func stopped(t testing.TB, options proxmox.Options) (*proxmox.Service, *api) {
	t.Helper()
	s := newService(t, options)
	a := raw(t, s)
	upid := a.ok("POST", debian+"/clone", "newid=101", "name=web", "full=1").text()
	<-time.After(options.CloneTime + options.ForkTime)
	if exit := a.exit(upid); exit != "OK" {
		t.Fatal(exit)
	}
	return s, a
}

// TestNormalized: what goes in, and how it comes out.
func TestNormalized(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        any
	}{
		{"description", "\n key\nsecond line \r\n\n", "\n key\nsecond line"},
		{"tags", "Web;better-compute,a b;web", "a;b;better-compute;web"},
		{"cores", "4", 4.0},
		{"memory", "current=2048", "2048"},
		{"onboot", "yes", 1.0},
		{"ciupgrade", "0", 0.0},
		{"cpulimit", "1.5", "1.5"},
		{"net0", "model=virtio,macaddr=bc:24:11:aa:bb:cc,tag=7,bridge=vmbr0", "virtio=BC:24:11:AA:BB:CC,bridge=vmbr0,tag=7"},
		{"scsi0", "file=shared:vm-101-disk-0,ssd=1,discard=on,size=1G", "shared:vm-101-disk-0,discard=on,size=3G,ssd=1"},
		{"ide2", "file=local-lvm:cloudinit,", "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"},
		{"ide3", "none,media=cdrom", "none,media=cdrom"},
		{"scsi1", "local-lvm:8,iothread=1", "local-lvm:vm-101-disk-0,iothread=1,size=8G"},
		{"ipconfig0", "ip=192.0.2.7/24,gw=192.0.2.1,ip6=auto", "ip=192.0.2.7/24,gw=192.0.2.1,ip6=auto"},
		{"cipassword", "hunter2", "**********"},
		{"sshkeys", "ssh-ed25519%20AAAA%2B%3D%20me", "ssh-ed25519%20AAAA%2B%3D%20me"},
	} {
		_, a := stopped(t, proxmox.Options{})
		a.ok("PUT", vm+"/config", test.name+"="+test.value)
		if got := a.ok("GET", vm+"/config").object()[test.name]; got != test.want {
			t.Errorf("%s=%q: got %#v, want %#v", test.name, test.value, got, test.want)
		}
	}
}

// TestMAC: a card without an address gets one.
func TestMAC(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.ok("PUT", vm+"/config", "net1=virtio,bridge=vmbr0,firewall=1")
	if got := machine(t, s, 101).Config["net1"]; !strings.HasPrefix(got, "virtio=BC:24:11:") || !strings.HasSuffix(got, ",bridge=vmbr0,firewall=1") {
		t.Errorf("net1 %s", got)
	}
}

// TestBadOptions: one refusal for each kind of mistake.
func TestBadOptions(t *testing.T) {
	_, a := stopped(t, proxmox.Options{})
	const unknown = "property is not defined in schema and the schema does not allow additional properties"
	for param, want := range map[string]string{
		"cores=many":                     "type check ('integer') failed - got 'many'",
		"cores=0":                        "value must have a minimum value of 1",
		"cpulimit=129":                   "value must have a maximum value of 128",
		"bios=coreboot":                  "value 'coreboot' does not have a value in the enumeration 'seabios, ovmf'",
		"bootdisk=floppy0":               "value does not match the regex pattern",
		"name=inst_1":                    "invalid format - value does not look like a valid DNS name\n",
		"colour=red":                     unknown,
		"scsi31=shared:1":                unknown,
		"net01=virtio":                   unknown,
		"sshkeys=ssh-ed25519 AAAA+ me":   "invalid format - invalid urlencoded string\n",
		"tags=a:b":                       "invalid format - invalid characters in tag\n",
		"ipconfig0=ip=192.0.2.7":         "invalid format - format error\nip: invalid format - value does not look like a valid ipv4 network configuration\n",
		"ipconfig0=gw=192.0.2.1":         "invalid format - format error\ngw: missing property - 'gw' requires this property: ip\n",
		"net0=bridge=vmbr0":              "invalid format - format error\nmodel: property is missing and it is not optional\n",
		"net0=virtio,colour=red":         "invalid format - format error\ncolour: " + unknown + "\n",
		"nameserver=one.one":             "invalid format - value does not look like a valid IP address\n",
		"cicustom=local:snippets/a,x=y":  "invalid format - format error\nx: " + unknown + "\n",
		"agent=enabled=1,colour=red":     "invalid format - format error\ncolour: " + unknown + "\n",
		"description=" + long(8193, "ä"): "value may only be 8192 characters long",
		"digest=" + long(41, "a"):        "value may only be 40 characters long",
		"skiplock=1":                     "Only root may use this option.",
		"delete=colour":                  "unknown option 'colour'",
		"revert=colour":                  "unknown option 'colour'",
	} {
		name, _, _ := strings.Cut(param, "=")
		got := a.refused(400, "Parameter verification failed.", "PUT", vm+"/config", param)
		if !maps.Equal(got.errors, map[string]string{name: want}) {
			t.Errorf("%.40s: %q", param, got.errors)
		}
	}
	for want, params := range map[string][]string{
		"no options specified": nil,
		"balloon value too large (must be smaller than assigned memory)": {"balloon=4096", "memory=2048"},
		"checksum mismatch (file change by other user?)":                 {"cores=2", "digest=" + long(40, "0")},
		"only root can set 'args' config":                                {"args=-S"},
		"storage 'x1' does not exist":                                    {"scsi1=x1:8"},
		"storage 'local' does not support content-type 'images'":         {"scsi1=local:8"},
	} {
		a.refused(500, want, "PUT", vm+"/config", params...)
	}
	if got := a.ok("GET", vm+"/config").object(); got["cores"] != 1.0 || got["scsi1"] != nil {
		t.Errorf("something changed: %v", got)
	}
}

func long(n int, of string) string { return strings.Repeat(of, n) }

// TestDigest: it changes with the options, and only with them.
func TestDigest(t *testing.T) {
	_, a := stopped(t, proxmox.Options{})
	digest := func() any { return a.ok("GET", vm+"/config").object()["digest"] }
	first := digest()
	if first != digest() {
		t.Error("the digest isn't stable")
	}
	a.ok("PUT", vm+"/config", "cores=2", "digest="+first.(string))
	if second := digest(); second == first {
		t.Error("the digest is the same after a change")
	}
	a.ok("PUT", vm+"/config", "cores=1")
	if third := digest(); third != first {
		t.Error("the digest is another with the same options")
	}
}

// TestPending: a running VM keeps what it can't take for its next start.
func TestPending(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/status/start")
	a.ok("PUT", vm+"/config", "cores=4", "name=other", "tags=x", "onboot=1", "delete=vga")
	if got := machine(t, s, 101); got.Config["cores"] != "1" || got.Config["name"] != "other" || got.Config["tags"] != "x" ||
		got.Config["onboot"] != "1" || !maps.Equal(got.Pending, map[string]string{"cores": "4"}) {
		t.Errorf("running: %v, pending %v", got.Config, got.Pending)
	}
	if got := a.ok("GET", vm+"/config").object(); got["cores"] != 4.0 || got["vga"] != nil {
		t.Errorf("by default %v", got)
	}
	if got := a.ok("GET", vm+"/config", "current=1").object(); got["cores"] != 1.0 || got["vga"] != "serial0" {
		t.Errorf("current %v", got)
	}
	rows := a.ok("GET", vm+"/pending").rows()
	find := func(key string) map[string]any {
		return rows[slices.IndexFunc(rows, func(row map[string]any) bool { return row["key"] == key })]
	}
	if row := find("cores"); row["value"] != "1" || row["pending"] != "4" {
		t.Errorf("pending %v", row)
	}
	if row := find("vga"); row["delete"] != 1.0 {
		t.Errorf("pending %v", row)
	}
	a.ok("PUT", vm+"/config", "revert=cores")
	a.ok("PUT", vm+"/config", "memory=4096")
	a.done("OK", "POST", vm+"/status/reboot")
	if got := machine(t, s, 101); got.Config["cores"] != "1" || got.Config["memory"] != "4096" || got.Config["vga"] != "" || len(got.Pending) != 0 {
		t.Errorf("after a reboot: %v, pending %v", got.Config, got.Pending)
	}
}

// TestConfigAsTask: what goes wrong then shows in the task.
func TestConfigAsTask(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/config", "cores=3")
	a.done("storage 'x1' does not exist", "POST", vm+"/config", "scsi1=x1:8")
	if got := a.ok("POST", vm+"/config", "cores=2", "background_delay=5"); got.data != nil {
		t.Error(got)
	}
	if got := machine(t, s, 101).Config; got["cores"] != "2" || got["scsi1"] != "" {
		t.Errorf("options %v", got)
	}
}

// TestDrives: what becomes of volumes when their drives go.
func TestDrives(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	a.ok("PUT", vm+"/config", "scsi1=local-lvm:8")
	a.ok("PUT", vm+"/config", "delete=scsi1,ide2")
	if got := machine(t, s, 101).Config; got["unused0"] != "local-lvm:vm-101-disk-0" || got["ide2"] != "" {
		t.Errorf("options %v", got)
	}
	if all := s.Volumes(); !slices.Contains(all, "pve1/local-lvm:vm-101-disk-0") || slices.Contains(all, "shared:vm-101-cloudinit") {
		t.Errorf("volumes %v", all)
	}
	a.ok("PUT", vm+"/config", "delete=unused0")
	a.ok("PUT", vm+"/config", "scsi1=local-lvm:8")
	a.ok("PUT", vm+"/config", "delete=scsi1", "force=1")
	if all := s.Volumes(); slices.Contains(all, "pve1/local-lvm:vm-101-disk-0") {
		t.Errorf("volumes %v", all)
	}
	s.SetOption(101, "protection", "1")
	a.refused(500, "can't remove drive 'scsi0' - protection mode enabled", "PUT", vm+"/config", "delete=scsi0")
}

// TestResize: all that is wrong with it shows in the task.
func TestResize(t *testing.T) {
	for size, want := range map[string]struct{ exit, size string }{
		"10G":        {"OK", "10G"},
		"+1G":        {"OK", "4G"},
		"3G":         {"OK", "3G"},
		"2G":         {"shrinking disks is not supported", "3G"},
		"10485760K":  {"OK", "10G"},
		"3221226000": {"OK", "3145729K"},
		"5T":         {"rbd error: rbd: create error: (28) No space left on device", "3G"},
	} {
		_, a := stopped(t, proxmox.Options{})
		a.done(want.exit, "PUT", vm+"/resize", "disk=scsi0", "size="+size)
		if got := a.ok("GET", vm+"/config").object()["scsi0"]; got != "shared:vm-101-disk-0,discard=on,size="+want.size {
			t.Errorf("%s: %v", size, got)
		}
	}
	_, a := stopped(t, proxmox.Options{})
	a.done("disk 'scsi5' does not exist", "PUT", vm+"/resize", "disk=scsi5", "size=1G")
	a.done("you can't resize a cdrom", "PUT", vm+"/resize", "disk=ide2", "size=1G")
	a.done("checksum mismatch (file change by other user?)", "PUT", vm+"/resize", "disk=scsi0", "size=9G", "digest=0")
	a.refused(400, "Parameter verification failed.", "PUT", vm+"/resize", "disk=net0", "size=1G")
	a.refused(400, "Parameter verification failed.", "PUT", vm+"/resize", "disk=scsi0", "size=1 G")
}

// TestSnippets: they are needed at every start, from memory or from a folder, and
// can be listed and removed but not written.
func TestSnippets(t *testing.T) {
	folder := t.TempDir()
	storages := append(proxmox.DefaultStorages(), proxmox.Storage{Name: "files", Type: "nfs", Shared: true, Content: "snippets", Folder: folder})
	s, a := stopped(t, proxmox.Options{Storages: storages})
	for storage, write := range map[string]func(text string){
		"local": func(text string) { s.AddSnippet("pve1", "local", "a.yaml", text) },
		"files": func(text string) {
			if err := os.WriteFile(filepath.Join(folder, "a.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		id := storage + ":snippets/a.yaml"
		a.ok("PUT", vm+"/config", "cicustom=user="+id)
		a.done("volume '"+id+"' does not exist", "POST", vm+"/status/start")
		write("#cloud-config\n")
		a.done("OK", "POST", vm+"/status/start")
		if got := machine(t, s, 101).UserData; got != "#cloud-config\n" {
			t.Errorf("%s: user data %q", storage, got)
		}
		if got := a.ok("GET", vm+"/cloudinit/dump", "type=user").data; got != "#cloud-config\n" {
			t.Errorf("%s: dump %q", storage, got)
		}
		a.done("OK", "POST", vm+"/status/stop")
		write(strings.Repeat("x", 1<<20+1))
		a.done("cloud-init file '"+id+"' is too big (> 1 MiB)", "POST", vm+"/status/start")
		content := "/nodes/pve1/storage/" + storage + "/content"
		if rows := a.ok("GET", content, "content=snippets").rows(); len(rows) != 1 || rows[0]["volid"] != id || rows[0]["size"] != float64(1<<20+1) {
			t.Errorf("%s: content %v", storage, rows)
		}
		a.ok("GET", content+"/"+id)
		a.done("OK", "DELETE", content+"/"+strings.ReplaceAll(id, "/", "%2F"))
		a.refused(500, "volume '"+id+"' does not exist", "GET", content+"/"+id)
		a.refused(501, "Method 'POST /nodes/pve1/storage/"+storage+"/upload' not implemented", "POST", "/nodes/pve1/storage/"+storage+"/upload")
	}
	// Without a drive for cloud-init the options do nothing.
	a.ok("PUT", vm+"/config", "delete=ide2")
	a.done("OK", "POST", vm+"/status/start")
}
