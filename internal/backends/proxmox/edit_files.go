// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Files with user data are kept under the VM's key, and go with the VM of that key. So
// a VM that gets another key takes its files along: a new VM of the old name would
// remove them with its own, and the renamed one would not start any more.

// moveFiles writes the files of a VM anew where their names or what they say must
// change, and puts them into the change: the content stays, but for the hostname. With
// another network the guest is told that it is another instance, since cloud-init would
// otherwise not look at its network again. The files that were written are returned.
func (e *editing) moveFiles(ctx context.Context, v *vm, ch *change) ([]snippet, error) {
	names := e.named(v.config)
	if e.snippets == nil || !e.hasFiles {
		return nil, nil
	}
	prefix := snippetPrefix(e.to.Marks.Key)
	inPlace := !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if inPlace && !ch.network {
		return nil, nil
	}
	contents, err := e.snippets.read(ctx, names)
	if err != nil {
		return nil, err
	}
	var instance string
	if ch.network {
		instance = networkOf(v.config, ch)
	}
	var files []snippet
	old := ""
	for _, p := range properties(v.config.get("cicustom"), "user") {
		if _, name, _ := strings.Cut(p.value, ":snippets/"); e.isOurFile(p.value) {
			files = append(files, snippet{part: p.name, content: contents[name]})
			if found := localHostForm.FindSubmatch(contents[name]); p.name == "meta" && found != nil {
				old = string(found[1])
			}
		}
	}
	for i := range files {
		files[i].content = rewritten(files[i], old, e.to.Name, instance)
		files[i].name = snippetName(e.to.Marks.Key, files[i])
	}
	custom := e.custom(v.config.get("cicustom"), files)
	if custom == v.config.get("cicustom") {
		return nil, nil
	}
	ch.put("cicustom", custom)
	return files, e.writeSnippets(ctx, files)
}

var (
	// localHostForm and instanceForm are the lines of our file meta: see [snippetsFor].
	localHostForm = regexp.MustCompile(`(?m)^local-hostname: "([^"\n]*)"$`)
	instanceForm  = regexp.MustCompile(`(?m)^instance-id: "([^"\n]*?)(?:-n[0-9a-f]{8})?"$`)
)

// rewritten is a file for a VM of another name, and with instance of another instance.
func rewritten(file snippet, old, name, instance string) []byte {
	if file.part == "meta" {
		out := localHostForm.ReplaceAll(file.content, fmt.Appendf(nil, "local-hostname: %q", name))
		if instance != "" {
			out = instanceForm.ReplaceAll(out, []byte(`instance-id: "${1}-n`+instance+`"`))
		}
		return out
	}
	if file.part != "user" || old == "" || old == name {
		return file.content
	}
	return renamedUserData(file.content, old, name)
}

// renamedUserData is user data in which the part that we have joined to the user's has
// another hostname. The user's own is left as it is.
func renamedUserData(content []byte, old, name string) []byte {
	host := func(name string) string {
		first, _, _ := strings.Cut(name, ".")
		return fmt.Sprintf("#cloud-config\nhostname: %q\n", first)
	}
	text := string(content)
	at := strings.LastIndex(text, host(old))
	if at < 0 || !strings.HasPrefix(text, "Content-Type: multipart/mixed; boundary=\"bettercompute-") {
		return content
	}
	return []byte(text[:at] + host(name) + text[at+len(host(old)):])
}

// networkOf is a hash of what cloud-init will tell the guest of its network.
func networkOf(config vmConfig, ch *change) string {
	will := map[string]string{}
	for name := range config {
		if networkForm.MatchString(name) {
			will[name] = config.get(name)
		}
	}
	for name := range ch.set {
		if networkForm.MatchString(name) {
			will[name] = ch.set.Get(name)
		}
	}
	for _, name := range ch.drop {
		delete(will, name)
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(will)) {
		fmt.Fprintf(sum, "%s\x00%s\x00", name, will[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

var networkForm = regexp.MustCompile(`^(?:ipconfig\d+|nameserver|searchdomain)$`)

// sweepOld removes the files of the name that a VM had before, unless a new VM has that
// name by now: it may have files of its own there, and they go with it.
func (e *editing) sweepOld(ctx context.Context) {
	old := e.oldKey
	if old == "" && e.from.Marks.Key != e.to.Marks.Key {
		old = e.from.Marks.Key // an edit that was cut off may have left them
	}
	if e.snippets == nil || !e.hasFiles || old == "" {
		return
	}
	others, err := e.FindMachines(ctx, old)
	switch {
	case err != nil:
		backends.Warn(ctx, fmt.Sprintf("%s: the files with the user data that it had under its old name are left: %v", e.what, err))
	case len(others) == 0:
		e.sweep(ctx, old)
	}
}
