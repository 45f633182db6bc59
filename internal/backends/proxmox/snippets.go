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
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// snippetStore is where files are put that VMs read at their start. Both calls may be
// repeated.
type snippetStore interface {
	// write puts files there, each whole or not at all.
	write(ctx context.Context, files []snippet) error
	// read are the contents of files of ours, by their names.
	read(ctx context.Context, names []string) (map[string][]byte, error)
	// sweep takes away our files whose names begin so, half-written ones too, but for
	// those that are kept.
	sweep(ctx context.Context, prefix string, keep []string) error
	// probe finds out whether files can be written there, and leaves none.
	probe(ctx context.Context) error
}

func newSnippets(config backends.Values, secrets backends.Secrets) snippetStore {
	if directory := config.String("directory"); directory != "" {
		return directoryStore(directory)
	}
	return newSFTPStore(config.Object("sftp"), secrets)
}

// snippetMode is that of our files: user data may hold secrets. The nodes read them as
// root.
const snippetMode fs.FileMode = 0o600

// snippetForm is that of our files' names: the key's part, then the content's.
var snippetForm = regexp.MustCompile(`^better-compute-[0-9a-f]{40}\.yaml$`)

// snippetPrefix is how the names of all files begin that are written for a key: so all
// of them are known that no VM names, or whose VM is gone.
func snippetPrefix(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "better-compute-" + hex.EncodeToString(sum[:8])
}

// partSuffix ends the name of a file that is being written; a dot begins it, as it
// begins nothing that Proxmox VE lists.
const partSuffix = ".part"

// swept tells whether a file of the folder is one that a sweep takes away.
func swept(name, prefix string, keep []string) bool {
	whole := name
	if rest, ok := strings.CutPrefix(name, "."); ok && strings.HasSuffix(name, partSuffix) {
		whole, _, _ = strings.Cut(rest, ".yaml.")
		whole += ".yaml"
	}
	return snippetForm.MatchString(whole) && strings.HasPrefix(whole, prefix) && !slices.Contains(keep, name)
}

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
		out[i].name = snippetName(spec.Marks.Key, s)
	}
	return out, nil
}

// snippetName is the name of a key's file.
func snippetName(key string, s snippet) string {
	sum := sha256.Sum256(append([]byte(key+"\x00"+s.part+"\x00"), s.content...))
	return snippetPrefix(key) + hex.EncodeToString(sum[:12]) + ".yaml"
}

// custom is the option cicustom that names files, besides what it named already: a
// template may have vendor data and a network configuration of its own.
func (c *Client) custom(has string, files []snippet) string {
	out := slices.DeleteFunc(properties(has, "user"), func(p property) bool { return c.isOurFile(p.value) })
	for _, s := range files {
		out = out.set(s.part, fmt.Sprintf("%s:snippets/%s", c.account.snippets.String("storage"), s.name))
	}
	return out.String()
}

// isOurFile tells whether a volume is a snippet that we wrote for some VM.
func (c *Client) isOurFile(volume string) bool {
	storage, name, ok := strings.Cut(volume, ":snippets/")
	return ok && storage == c.account.snippets.String("storage") && snippetForm.MatchString(name)
}

// fileNames are the names of files.
func fileNames(files []snippet) []string {
	out := make([]string, len(files))
	for i, s := range files {
		out[i] = s.name
	}
	return out
}

// named are the files of ours that a VM's options name.
func (c *Client) named(config vmConfig) []string {
	var out []string
	for _, p := range properties(config.get("cicustom"), "user") {
		if c.isOurFile(p.value) {
			_, name, _ := strings.Cut(p.value, ":snippets/")
			out = append(out, name)
		}
	}
	return out
}

// writeSnippets writes the files of a wish.
func (c *Client) writeSnippets(ctx context.Context, files []snippet) error {
	if len(files) == 0 {
		return nil
	}
	return c.snippets.write(ctx, files)
}

// sweep removes the files of a key, but for those that are kept. What can't be removed
// is only in the way of nobody: a warning.
func (c *Client) sweep(ctx context.Context, key string, keep ...string) {
	if c.snippets == nil || key == "" {
		return
	}
	if err := c.snippets.sweep(ctx, snippetPrefix(key), keep); err != nil {
		backends.Warn(ctx, fmt.Sprintf("Files with user data that no VM needs any more could not be removed: %v", err))
	}
}

// SweepMachine implements [backends.Sweeper]: the user data of a VM that was removed by
// hand.
func (w *withSnippets) SweepMachine(ctx context.Context, key string) error {
	return w.snippets.sweep(ctx, snippetPrefix(key), nil)
}

// sweepGone removes the files of a VM that was just destroyed, if it may have any: it
// names some, or was made with user data.
func (c *Client) sweepGone(ctx context.Context, v *vm, m backends.Marks) {
	switch mayHave := len(c.named(v.config)) > 0 || !backends.DigestMatches(m.Digest, m.Key, backends.DigestUserData, ""); {
	case mayHave && c.snippets != nil:
		c.sweep(ctx, m.Key)
	case c.snippets == nil && strings.Contains(v.config.get("cicustom"), ":snippets/"+snippetPrefix(m.Key)):
		backends.Warn(ctx, fmt.Sprintf("The files with the user data of the VM %d are left, since the account has no snippets any more: %s.",
			v.vmid, backends.Printable(v.config.get("cicustom"))))
	}
}

// directoryStore is a folder of this machine, a mount of the storage's.
type directoryStore string

func (d directoryStore) write(_ context.Context, files []snippet) error {
	for _, s := range files {
		if err := d.failure("written", s.name, d.writeOne(s)); err != nil {
			return err
		}
	}
	return nil
}

func (d directoryStore) writeOne(s snippet) error {
	f, err := os.CreateTemp(string(d), "."+s.name+".*"+partSuffix)
	if err != nil {
		return err
	}
	if err = f.Chmod(snippetMode); err == nil {
		_, err = f.Write(s.content)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(string(d), s.name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (d directoryStore) read(_ context.Context, names []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(string(d), name))
		if err != nil {
			return nil, d.failure("read", name, err)
		}
		out[name] = content
	}
	return out, nil
}

func (d directoryStore) sweep(_ context.Context, prefix string, keep []string) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return d.failure("looked for", prefix+"…", err)
	}
	var failed error
	for _, e := range entries {
		if !swept(e.Name(), prefix, keep) {
			continue
		}
		if err := os.Remove(filepath.Join(string(d), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, d.failure("removed", e.Name(), err))
		}
	}
	return failed
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
