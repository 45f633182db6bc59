// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// snippetStore is where files are put that VMs read at their start. Both calls may be
// repeated.
type snippetStore interface {
	// write puts a file there, whole or not at all.
	write(ctx context.Context, name string, content []byte) error
	// remove takes a file away; one that isn't there is a success.
	remove(ctx context.Context, name string) error
}

func newSnippets(config backends.Values, secrets backends.Secrets) snippetStore {
	if directory := config.String("directory"); directory != "" {
		return directoryStore(directory)
	}
	return newSFTPStore(config.Object("sftp"), secrets)
}

// snippetForm is that of our files' names.
var snippetForm = regexp.MustCompile(`^better-compute-[0-9a-f]{40}\.yaml$`)

// snippet is a file for one VM.
type snippet struct {
	part    string // of cloud-init: user, meta
	name    string
	content []byte
}

// snippetsFor are the files of a wish: the user data, and the hostname, which
// Proxmox VE writes into the very part that the user data replaces. A name says the
// content and whose it is: a file is never changed, and goes with its VM.
func snippetsFor(spec backends.MachineSpec) ([]snippet, error) {
	if !hasUserData(spec) {
		return nil, nil
	}
	user, err := spec.CloudInit()
	if err != nil {
		return nil, err
	}
	user = append([]byte(nil), user...)
	sum := sha256.Sum256(user)
	meta := fmt.Appendf(nil, "instance-id: %q\nlocal-hostname: %q\n", spec.Marks.Key+"-"+hex.EncodeToString(sum[:8]), spec.Name)
	out := []snippet{{part: "meta", content: meta}, {part: "user", content: user}}
	for i, s := range out {
		sum := sha256.Sum256(append([]byte(spec.Marks.Key+"\x00"+s.part+"\x00"), s.content...))
		out[i].name = "better-compute-" + hex.EncodeToString(sum[:20]) + ".yaml"
	}
	return out, nil
}

// custom is the option cicustom that names files.
func (c *Client) custom(files []snippet) string {
	parts := make([]string, len(files))
	for i, s := range files {
		parts[i] = fmt.Sprintf("%s=%s:snippets/%s", s.part, c.account.snippets.String("storage"), s.name)
	}
	return strings.Join(parts, ",")
}

// writeSnippets writes the files of a wish.
func (c *Client) writeSnippets(ctx context.Context, files []snippet) error {
	for _, s := range files {
		if err := c.snippets.write(ctx, s.name, s.content); err != nil {
			return err
		}
	}
	return nil
}

// removeSnippets removes the files of ours that a VM's options name, but for those
// that are kept. What can't be removed is only in the way of nobody: a warning.
func (c *Client) removeSnippets(ctx context.Context, custom string, keep ...snippet) {
	if c.snippets == nil {
		return
	}
	for _, p := range properties(custom, "user") {
		storage, name, ok := strings.Cut(p.value, ":snippets/")
		if !ok || storage != c.account.snippets.String("storage") || !snippetForm.MatchString(name) {
			continue
		}
		kept := false
		for _, s := range keep {
			kept = kept || s.name == name
		}
		if kept {
			continue
		}
		if err := c.snippets.remove(ctx, name); err != nil {
			backends.Warn(ctx, fmt.Sprintf("The snippet %s of a VM that is gone could not be removed: %v", name, err))
		}
	}
}

// directoryStore is a folder of this machine, a mount of the storage's.
type directoryStore string

func (d directoryStore) write(_ context.Context, name string, content []byte) (err error) {
	// A guest's user data may hold secrets; the nodes read it as root.
	f, err := os.CreateTemp(string(d), ".better-compute-*")
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), filepath.Join(string(d), name))
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	return d.failure("written", name, err)
}

func (d directoryStore) remove(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(string(d), name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return d.failure("removed", name, err)
}

func (d directoryStore) failure(done, name string, err error) error {
	if err == nil {
		return nil
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	e := backends.Errorf(backends.InvalidConfig, "The snippet %s can't be %s in %s: %v.", name, done, string(d), err).
		WithRemedy("See whether the account's snippets.directory is mounted here and can be written to.")
	e.Err = err
	return e
}
