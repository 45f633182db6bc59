// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/sftptest"
)

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// stores are the two ways to a folder.
func stores(t *testing.T) map[string]struct {
	store  snippetStore
	folder string
} {
	t.Helper()
	mount := t.TempDir()
	server := sftptest.New(t, "")
	return map[string]struct {
		store  snippetStore
		folder string
	}{
		"directory": {directoryStore(mount), mount},
		"sftp":      {sftpStoreOf(server, nil), server.Folder},
	}
}

// sftpStoreOf is a store on a test server, with some fields of its own.
func sftpStoreOf(server *sftptest.Server, other backends.Values) *sftpStore {
	config := backends.Values{
		"host": server.Address, "user": sftptest.User, "private_key": "env://KEY", "known_hosts": server.KnownHosts, "path": "/",
	}
	maps.Copy(config, other)
	return newSFTPStore(config, &fixedSecrets{known: map[string]string{"env://KEY": server.PrivateKey, "env://HOSTS": server.KnownHosts, "env://HUNTER": "hunter2"}})
}

func TestStores(t *testing.T) {
	for name, s := range stores(t) {
		const file = "better-compute-0123456789012345678901234567890123456789.yaml"
		for _, content := range []string{"#cloud-config\n# ü\n", "again\x00"} {
			if err := s.store.write(t.Context(), oneFile(file, content)); err != nil {
				t.Fatal(name, err)
			}
			if info, err := os.Stat(filepath.Join(s.folder, file)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: others may read it: %v, %v", name, info, err)
			}
			got, err := os.ReadFile(filepath.Join(s.folder, file))
			if err != nil || string(got) != content {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if left := names(t, s.folder); len(left) != 1 {
			t.Errorf("%s: %v", name, left)
		}
	}
}

// TestSweep takes away what begins with a prefix, what was being written too, and
// nothing else.
func TestSweep(t *testing.T) {
	prefix, other := snippetPrefix("inst_a"), snippetPrefix("inst_b")
	file := func(prefix, rest string) string { return prefix + strings.Repeat(rest, 24) + ".yaml" }
	kept, gone := file(prefix, "1"), file(prefix, "2")
	stay := []string{kept, file(other, "3"), "." + file(other, "4") + ".part", prefix + "-mine.yaml", "vendor.yaml", gone + ".bak"}
	going := []string{gone, "." + kept + ".part", "." + gone + ".4711.part"}
	for name, s := range stores(t) {
		for _, f := range slices.Concat(stay, going) {
			if err := os.WriteFile(filepath.Join(s.folder, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing to do
			if err := s.store.sweep(t.Context(), prefix, []string{kept}); err != nil {
				t.Error(name, err)
			}
		}
		if left := names(t, s.folder); !slices.Equal(left, slices.Sorted(slices.Values(stay))) {
			t.Errorf("%s: %q", name, left)
		}
	}
}

func oneFile(name, content string) []snippet {
	return []snippet{{name: name, content: []byte(content)}}
}

// TestSFTPIsChecked refuses a host with another key, a user with another, and what is
// no key.
func TestSFTPIsChecked(t *testing.T) {
	server := sftptest.New(t, "")
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	another := sftpStoreOf(server, nil)
	another.secrets = &fixedSecrets{known: map[string]string{"env://KEY": string(pem.EncodeToMemory(block))}}
	for name, test := range map[string]struct {
		store  *sftpStore
		code   backends.Code
		remedy string
	}{
		"host key":    {sftpStoreOf(server, backends.Values{"known_hosts": string(ssh.MarshalAuthorizedKey(public))}), backends.ProviderError, "known_hosts"},
		"user's key":  {another, backends.ProviderError, "snippets.sftp"},
		"no key":      {sftpStoreOf(server, backends.Values{"private_key": "env://HUNTER"}), backends.InvalidConfig, ""},
		"no host key": {sftpStoreOf(server, backends.Values{"known_hosts": "env://HUNTER"}), backends.InvalidConfig, ""},
		"nobody":      {sftpStoreOf(server, backends.Values{"host": "127.0.0.1:1"}), backends.ProviderError, "host"},
		"no folder":   {sftpStoreOf(server, backends.Values{"path": "/missing"}), backends.ProviderError, "path"},
	} {
		e := wantCode(t, test.store.write(t.Context(), oneFile("x", "y")), test.code)
		if !strings.Contains(e.Remedy, test.remedy) {
			t.Errorf("%s: %s", name, e.Remedy)
		}
	}
	if err := sftpStoreOf(server, backends.Values{"known_hosts": "env://HOSTS"}).write(t.Context(), oneFile("x", "y")); err != nil {
		t.Error(err)
	}
	if left := names(t, server.Folder); !slices.Equal(left, []string{"x"}) {
		t.Errorf("%v", left)
	}
}

// TestSFTPConnections writes many files at once, as many VMs do, to a host that drops
// connections: there are few at a time, and one that is dropped is made anew.
func TestSFTPConnections(t *testing.T) {
	server := sftptest.New(t, "")
	store := sftpStoreOf(server, nil)
	server.Refuse(2)
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := store.write(t.Context(), oneFile(fmt.Sprint("file-", i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := names(t, server.Folder); len(left) != n {
		t.Errorf("%v", left)
	}
	if made, most := server.Connections(); made != n+2 || most > sftpAtOnce {
		t.Errorf("%d connections, %d logging in at once", made, most)
	}
}

func TestKnownHosts(t *testing.T) {
	server := sftptest.New(t, "")
	_, bare, _ := strings.Cut(strings.TrimSpace(server.KnownHosts), " ")
	for text, want := range map[string]int{
		server.KnownHosts: 1, bare: 1, "# a comment\n" + server.KnownHosts + "\n" + bare + " root@pve1\n": 2, "pve1": 0, "": 0, "@revoked * " + bare: 0,
	} {
		if got := len(hostKeys(text)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// TestUserData hands user data to a guest, and takes the files away with the VM.
func TestUserData(t *testing.T) {
	folder := t.TempDir()
	cluster, err := emulated.New(emulated.Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	b, ok := backendOf(t, emulator.Transport(cluster), &fixedSecrets{token: testToken}, backends.Values{
		"task_poll": "10ms", "snippets": backends.Values{"storage": "local", "directory": folder},
	}).(*withSnippets)
	if !ok {
		t.Fatal("an account with snippets can't reinstall with user data")
	}
	spec := testSpec()
	spec.UserData = "#cloud-config\npackages: [nginx]\n"
	spec.Options = static(1)
	files, err := snippetsFor(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // what a mount shares
		for _, node := range []string{"pve1", "pve2"} {
			cluster.AddSnippet(node, "local", f.name, string(f.content))
		}
	}
	m := mustCreate(t, b.Client, spec)
	v := emulatedVM(t, cluster, m.ID)
	if v.UserData != spec.UserData {
		t.Errorf("the guest got %q", v.UserData)
	}
	if left := names(t, folder); len(left) != 2 {
		t.Fatalf("%v", left)
	}
	for _, name := range names(t, folder) {
		if !snippetForm.MatchString(name) || !strings.Contains(v.Config["cicustom"], "local:snippets/"+name) {
			t.Errorf("%s, %s", name, v.Config["cicustom"])
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(text) != spec.UserData && !strings.Contains(string(text), `local-hostname: "web-0"`) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	next := spec
	next.UserData, next.SSHKeys = "#!/bin/sh\ntrue\n", []string{"ssh-ed25519 AAAA me"}
	if files, err = snippetsFor(next); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		cluster.AddSnippet("pve1", "local", f.name, string(f.content))
	}
	if err := b.ReinstallWithUserData(t.Context(), m, next); err != nil {
		t.Fatal(err)
	}
	if v = emulatedVM(t, cluster, m.ID); !strings.Contains(v.UserData, "#!/bin/sh") || !strings.Contains(v.UserData, "ssh-ed25519 AAAA me") || !v.Running {
		t.Errorf("the guest got %q", v.UserData)
	}
	if left := names(t, folder); len(left) != 2 || !strings.Contains(v.Config["cicustom"], left[0]) || !strings.Contains(v.Config["cicustom"], left[1]) {
		t.Errorf("%v, %s", left, v.Config["cicustom"])
	}
	// Another VM with the same user data has files of its own.
	second := specOf(2)
	second.UserData = next.UserData
	others, err := snippetsFor(second)
	if err != nil || slices.ContainsFunc(others, func(s snippet) bool { return slices.Contains(names(t, folder), s.name) }) {
		t.Errorf("%v, %v", others, err)
	}
	if err := b.DeleteMachine(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if left := names(t, folder); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

// TestSnippetElsewhere starts a VM on a node that doesn't have the file.
func TestSnippetElsewhere(t *testing.T) {
	cluster, err := emulated.New(emulated.Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, emulator.Transport(cluster), backends.Values{"task_poll": "10ms"}, backends.Values{
		"snippets": backends.Values{"storage": "local", "directory": t.TempDir()},
	})
	spec := testSpec()
	spec.UserData = "#cloud-config\npackages: [nginx]\n"
	_, err = create(t.Context(), c, spec)
	if e := wantCode(t, err, backends.ProviderError); !strings.Contains(e.Remedy, "node pve1 can't read") || !strings.Contains(e.Message, "snippets/better-compute-") {
		t.Errorf("%v\n%s", e, e.Remedy)
	}
}

// TestKeysNeedNoSnippet sends hostname and keys by Proxmox VE's own options, in an
// account without snippets too.
func TestKeysNeedNoSnippet(t *testing.T) {
	for _, userData := range []string{"", "#cloud-config", "#cloud-config\n"} {
		spec := testSpec()
		spec.UserData, spec.SSHKeys = userData, []string{"ssh-ed25519 A"}
		files, err := snippetsFor(spec)
		if err != nil || files != nil {
			t.Errorf("%v, %v", files, err)
		}
		if got := cloudInitOptions(spec); got["sshkeys"] == "" {
			t.Errorf("%v", got)
		}
		if issues := clientOf(t, &script{}).CheckForm(spec); len(issues) > 0 {
			t.Error(issues)
		}
	}
}

// TestDirectoryErrors name the folder, not what was to be written.
func TestDirectoryErrors(t *testing.T) {
	d := directoryStore(filepath.Join(t.TempDir(), "missing"))
	e := wantCode(t, d.write(t.Context(), oneFile("x", "hunter2")), backends.InvalidConfig)
	if !strings.Contains(e.Message, string(d)) || strings.Contains(fmt.Sprint(e), "hunter2") {
		t.Error(e)
	}
}
