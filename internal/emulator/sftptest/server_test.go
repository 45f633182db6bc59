// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package sftptest_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/sftptest"
)

// dial connects with a key, as a client that knows the server by the line does.
func dial(t *testing.T, s *sftptest.Server, user, key, knownHosts string) (*sftp.Client, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(knownHosts), 0o600); err != nil {
		t.Fatal(err)
	}
	callback, err := knownhosts.New(file)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := ssh.Dial("tcp", s.Address, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: callback})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	client, err := sftp.NewClient(connection)
	if err == nil {
		t.Cleanup(func() { _ = client.Close() })
	}
	return client, err
}

func connect(t *testing.T, s *sftptest.Server) *sftp.Client {
	t.Helper()
	client, err := dial(t, s, sftptest.User, s.PrivateKey, s.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func write(client *sftp.Client, name, text string) error {
	file, err := client.Create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}

// TestFiles writes, renames, lists, reads and removes files.
func TestFiles(t *testing.T) {
	s := sftptest.New(t, "")
	client := connect(t, s)
	if err := client.MkdirAll("/snippets"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"/snippets/a.tmp": "one", "/snippets/b": "two"} {
		if err := write(client, name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Rename("/snippets/a.tmp", "/snippets/b"); err == nil {
		t.Error("a plain rename replaced a file")
	}
	if err := client.PosixRename("/snippets/a.tmp", "/snippets/b"); err != nil {
		t.Error(err)
	}
	if err := client.Chmod("/snippets/b", 0o600); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(s.Folder, "snippets", "b"))
	if err != nil || string(text) != "one" {
		t.Errorf("the file has %q, %v", text, err)
	}
	entries, err := client.ReadDir("/snippets")
	if err != nil || len(entries) != 1 || entries[0].Name() != "b" || entries[0].Size() != 3 || entries[0].Mode().Perm() != 0o600 {
		t.Errorf("entries %v, %v", entries, err)
	}
	file, err := client.Open("/snippets/b")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(file); err != nil || string(text) != "one" {
		t.Errorf("read %q, %v", text, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Remove("/snippets/b"); err != nil {
		t.Error(err)
	}
	if _, err := client.Stat("/snippets/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after it was removed: %v", err)
	}
	if calls := s.Calls(); !slices.Contains(calls, "Put /snippets/a.tmp") || !slices.Contains(calls, "Remove /snippets/b") {
		t.Errorf("calls %q", calls)
	}
}

// TestFolder: no path and no link leads out of it.
func TestFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sftptest.New(t, t.TempDir())
	if err := os.Symlink(outside, filepath.Join(s.Folder, "link")); err != nil {
		t.Fatal(err)
	}
	client := connect(t, s)
	for _, name := range []string{outside, "/../" + outside, "/link"} {
		if _, err := client.Open(name); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

// TestWhoMayEnter: that user with that key only, and clients that don't know the
// server leave.
func TestWhoMayEnter(t *testing.T) {
	s, other := sftptest.New(t, ""), sftptest.New(t, "")
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil || len(key) == 0 {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(s.KnownHosts, " ")
	_, hostKey, _ := strings.Cut(other.KnownHosts, " ")
	impostor := name + " " + hostKey
	for name, try := range map[string]struct{ user, key, knownHosts string }{
		"another user":     {"root", s.PrivateKey, s.KnownHosts},
		"another key":      {sftptest.User, other.PrivateKey, s.KnownHosts},
		"another host key": {sftptest.User, s.PrivateKey, impostor},
		"unknown host":     {sftptest.User, s.PrivateKey, other.KnownHosts},
	} {
		if _, err := dial(t, s, try.user, try.key, try.knownHosts); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}

// TestFaults: calls that fail, and connections that end.
func TestFaults(t *testing.T) {
	s := sftptest.New(t, "")
	client := connect(t, s)
	s.Fail("Put", sftp.ErrSSHFxPermissionDenied)
	if err := write(client, "/a", "x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a failing upload: %v", err)
	}
	s.Fail("Put", nil)
	if err := write(client, "/a", "x"); err != nil {
		t.Error(err)
	}
	s.Drop()
	if err := write(client, "/b", "x"); err == nil {
		t.Error("it goes on after the connection ended")
	}
	if err := write(connect(t, s), "/b", "x"); err != nil {
		t.Errorf("after a new connection: %v", err)
	}
}
