// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// withFolder is an emulated cluster whose nodes read user data from a folder.
func withFolder(t *testing.T) (c *Client, cluster *emulated.Service, folder string) {
	t.Helper()
	folder = t.TempDir()
	c, cluster = emulate(t, emulated.Options{Snippets: folder},
		backends.Values{"snippets": backends.Values{"storage": emulated.SnippetsStorage, "directory": folder}})
	return c, cluster, folder
}

// withData is a wish with user data and a key, so that both are joined.
func withData() backends.MachineSpec {
	s := testSpec()
	s.UserData = "#cloud-config\nhostname: \"mine\"\nruncmd: [\"echo web-0\"]\n"
	s.SSHKeys = []string{"ssh-ed25519 AAAA me"}
	s.Marks.Digest = backends.Digest(testKey, map[backends.DigestField]string{backends.DigestUserData: s.UserData})
	return s
}

// partsOf are the contents of a VM's files by their parts, each of which must be there.
func partsOf(t *testing.T, c *Client, cluster *emulated.Service, folder, id string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range properties(emulatedVM(t, cluster, id).Config["cicustom"], "user") {
		_, name, _ := strings.Cut(p.value, ":snippets/")
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !c.isOurFile(p.value) {
			t.Fatalf("%s: %v", p.value, err)
		}
		out[p.name] = string(content)
	}
	if len(out) != 2 {
		t.Fatalf("%v", out)
	}
	return out
}

// TestRenameTakesFilesAlong: a VM with another name keeps its user data and is the same
// instance to cloud-init, and a new VM of its old name takes nothing from it.
func TestRenameTakesFilesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster, folder := withFolder(t)
		from := withData()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		before := partsOf(t, c, cluster, folder, s.m.ID)
		to := completed(renamed(from, "web-1"))
		m, err := s.edit(t.Context(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		after := partsOf(t, c, cluster, folder, m.ID)
		if want := strings.ReplaceAll(before["meta"], `local-hostname: "web-0"`, `local-hostname: "web-1"`); after["meta"] != want {
			t.Errorf("meta %q, want %q", after["meta"], want)
		}
		if want := strings.ReplaceAll(before["user"], `hostname: "web-0"`, `hostname: "web-1"`); after["user"] != want || want == before["user"] {
			t.Errorf("user %q, want %q", after["user"], want)
		}
		left := names(t, folder)
		if len(left) != 2 || !strings.HasPrefix(left[0], snippetPrefix(to.Marks.Key)) || s.off {
			t.Errorf("%q, switched off %v", left, s.off)
		}
		heir := mustCreate(t, c, from)
		// As if the process had ended before it removed the old files: they are another's.
		if _, err := s.edit(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		partsOf(t, c, cluster, folder, heir.ID)
		if err := c.DeleteMachine(t.Context(), heir); err != nil {
			t.Fatal(err)
		}
		if err := c.Power(t.Context(), m, backends.PowerCycle); err != nil {
			t.Errorf("it doesn't start any more: %v", err)
		}
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if left := names(t, folder); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	})
}

// TestAnotherNetworkIsAnotherInstance: cloud-init looks at the network of a new instance
// only, so a guest with user data gets another instance-id with another address, and the
// old one's back with the old.
func TestAnotherNetworkIsAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster, folder := withFolder(t)
		from := with(withData(), static(5))
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		seen := map[string]bool{partsOf(t, c, cluster, folder, s.m.ID)["meta"]: true}
		for _, i := range []int{6, 7} {
			to := completed(with(from, static(i)))
			for range 2 {
				if _, err := s.edit(t.Context(), from, to); err != nil {
					t.Fatal(err)
				}
			}
			meta := partsOf(t, c, cluster, folder, s.m.ID)["meta"]
			if seen[meta] || strings.Count(meta, "-n") != 1 || !strings.Contains(meta, `local-hostname: "web-0"`) {
				t.Errorf("meta %q", meta)
			}
			seen[meta] = true
			from = to
		}
		if left := names(t, folder); len(left) != 2 {
			t.Errorf("left %q", left)
		}
		// What has nothing to do with the network leaves the files alone.
		before := partsOf(t, c, cluster, folder, s.m.ID)
		if _, err := s.edit(t.Context(), from, completed(with(from, backends.Values{"on_boot": true}))); err != nil {
			t.Fatal(err)
		}
		if after := partsOf(t, c, cluster, folder, s.m.ID); after["meta"] != before["meta"] {
			t.Errorf("meta %q", after["meta"])
		}
	})
}

// TestFilesOfInterruptedRename: whatever call is refused or unanswered, the VM can start
// afterwards, and the next edit leaves its own files only.
func TestFilesOfInterruptedRename(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.KindLoseAnswer, emulator.KindReset, emulator.KindStatus} {
		for nth := 1; ; nth++ {
			fired := true
			synctest.Test(t, func(t *testing.T) {
				c, cluster, folder := withFolder(t)
				from := withData()
				s := &switched{Client: c, m: mustCreate(t, c, from)}
				to := completed(renamed(from, "web-1"))
				rule := emulator.Rule{Kind: kind, Nth: nth, Times: 1000, Path: "*"}
				if kind == emulator.KindStatus {
					rule.Status = 403
				}
				if err := cluster.AddFault(rule); err != nil {
					t.Fatal(err)
				}
				_, err := s.edit(t.Context(), from, to)
				cluster.ClearFaults()
				fired = err != nil
				if s.m, err = c.GetMachine(t.Context(), s.m.ID); err != nil {
					t.Fatal(err)
				}
				partsOf(t, c, cluster, folder, s.m.ID)
				if _, err := s.edit(t.Context(), from, to); err != nil {
					t.Fatal(err)
				}
				partsOf(t, c, cluster, folder, s.m.ID)
				if left := names(t, folder); len(left) != 2 {
					t.Errorf("%s, call %d: left %q", kind, nth, left)
				}
			})
			if !fired {
				break
			}
		}
	}
}

// TestRenameWithoutItsFiles is refused before anything is changed.
func TestRenameWithoutItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster, folder := withFolder(t)
		from := withData()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		for _, name := range names(t, folder) {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.edit(t.Context(), from, completed(renamed(from, "web-1")))
		if e := wantCode(t, err, backends.InvalidConfig); !strings.Contains(e.Message, "can't be read") || e.Remedy == "" {
			t.Errorf("%+v", e)
		}
		if v := emulatedVM(t, cluster, s.m.ID); v.Name != "web-0" {
			t.Errorf("it is called %s", v.Name)
		}
	})
}

// TestRead reads files back by both ways, and says which one isn't there.
func TestRead(t *testing.T) {
	for name, s := range stores(t) {
		const file = "better-compute-0123456789012345678901234567890123456789.yaml"
		if err := s.store.write(t.Context(), oneFile(file, "a\x00ü\n")); err != nil {
			t.Fatal(name, err)
		}
		if got, err := s.store.read(t.Context(), []string{file}); err != nil || string(got[file]) != "a\x00ü\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		_, err := s.store.read(t.Context(), []string{file, "other.yaml"})
		if e := wantError(t, err); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(e.Message, "other.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
