// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ManagedTag is on every VM of ours that is complete, and is written last.
const ManagedTag = "better-compute"

// markPrefix begins all other tags of ours.
const markPrefix = "bc-"

// The names of what we write on a VM: a tag bc-NAME-VALUE, and NAME=VALUE in the
// line of its description. Image, offer, disk, created and protected aren't marks: they are
// what the lists of Proxmox VE don't show of a VM, kept where a list is enough.
const (
	nameVMID      = "vmid"
	nameKey       = "key"
	nameAccount   = "account"
	namePool      = "pool"
	nameClaim     = "claim"
	nameDigest    = "digest"
	nameImage     = "image"
	nameOffer     = "offer"
	nameDisk      = "disk"
	nameCreated   = "created"
	nameProtected = "protected"
)

var markNames = []string{
	nameVMID, nameKey, nameAccount, namePool, nameClaim, nameDigest, nameImage, nameOffer, nameDisk, nameCreated, nameProtected,
}

// tagForm is what Proxmox VE takes as a tag, in lower case: it writes them so by
// itself, unless the datacenter is set otherwise.
var tagForm = regexp.MustCompile(`^[a-z0-9_][a-z0-9_+.-]*$`)

// maxTag bounds a tag's length: no limit is documented, and nobody reads more.
const maxTag = 128

// note is what we write on a VM.
type note struct {
	marks backends.Marks
	// image is the VMID of its template, offer what it was made as.
	image, offer string
	// disk is the boot disk's size in MiB where it isn't the offer's: the template's was
	// larger, or the VM was given a larger offer and kept its disk.
	disk      int64
	created   time.Time // in whole seconds
	protected bool
}

func (n note) values(vmid int) map[string]string {
	out := map[string]string{
		nameVMID: strconv.Itoa(vmid), nameKey: n.marks.Key, nameAccount: n.marks.Account, namePool: n.marks.Pool,
		nameClaim: n.marks.Claim, nameDigest: n.marks.Digest, nameImage: n.image, nameOffer: n.offer,
	}
	if !n.created.IsZero() {
		out[nameCreated] = strconv.FormatInt(n.created.Unix(), 10)
	}
	if n.disk > 0 {
		out[nameDisk] = strconv.FormatInt(n.disk, 10)
	}
	if n.protected {
		out[nameProtected] = "yes"
	}
	return out
}

func noteOf(values map[string]string) note {
	n := note{
		marks: backends.Marks{
			Managed: true, Key: values[nameKey], Account: values[nameAccount], Pool: values[namePool],
			Claim: values[nameClaim], Digest: values[nameDigest],
		},
		image: values[nameImage], offer: values[nameOffer], protected: values[nameProtected] != "",
	}
	n.disk = scalar(values[nameDisk]).number()
	if created, err := strconv.ParseInt(values[nameCreated], 10, 64); err == nil && created > 0 && created < 1<<40 {
		n.created = time.Unix(created, 0).UTC()
	}
	return n
}

// tags are ours for a VM; without complete they lack the tag that comes last.
func (n note) tags(vmid int) []string {
	var out []string
	values := n.values(vmid)
	for _, name := range markNames {
		if v := values[name]; v != "" {
			out = append(out, markPrefix+name+"-"+v)
		}
	}
	if n.marks.Complete {
		out = append(out, ManagedTag)
	}
	return out
}

// isOurs tells whether a tag is one that only we write.
func isOurs(tag string) bool {
	if tag == ManagedTag {
		return true
	}
	rest, ok := strings.CutPrefix(tag, markPrefix)
	return ok && slices.ContainsFunc(markNames, func(name string) bool { return strings.HasPrefix(rest, name+"-") })
}

// splitTags splits what Proxmox VE shows or takes as tags: a list by semicolons,
// commas or blanks, in whatever case.
func splitTags(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(",; \t\n\x00", r) })
	slices.Sort(all)
	return slices.Compact(all)
}

// joinTags is a list of tags, each once, in the order that Proxmox VE gives them.
func joinTags(tags ...[]string) string {
	all := slices.Concat(tags...)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ";")
}

// foreignTags are the tags that aren't ours.
func foreignTags(tags []string) []string { return slices.DeleteFunc(slices.Clone(tags), isOurs) }

// readTags is the note in a VM's tags; ok is false where there is none, or one of
// another VMID: the VM is a copy, or was restored from a backup elsewhere.
func readTags(vmid int, tags []string) (n note, ok bool) {
	values := map[string]string{}
	for _, tag := range tags {
		for _, name := range markNames {
			if v, found := strings.CutPrefix(tag, markPrefix+name+"-"); found && v != "" {
				values[name] = v
			}
		}
	}
	if values[nameKey] == "" || values[nameVMID] != strconv.Itoa(vmid) {
		return note{}, false
	}
	n = noteOf(values)
	n.marks.Complete = slices.Contains(tags, ManagedTag)
	return n, true
}

// lineStart begins our line of a description.
const lineStart = ManagedTag + ":"

var (
	lineForm  = regexp.MustCompile(`^better-compute:(?: [a-z]+=[A-Za-z0-9_.+-]+)+$`)
	valueForm = regexp.MustCompile(`^[A-Za-z0-9_.+-]*$`)
)

// line is the note as one line of a description: all on one line of its own, so that
// it is found by searching for a key, and survives what people write around it.
func (n note) line(vmid int) string {
	var b strings.Builder
	b.WriteString(lineStart)
	values := n.values(vmid)
	for _, name := range markNames {
		if v := values[name]; v != "" && name != nameProtected { // its flag is in the same file
			b.WriteString(" " + name + "=" + v)
		}
	}
	return b.String()
}

// leastLine is the least that our line of a description must say: whose the VM is.
func leastLine(vmid int, key string) string {
	return note{marks: backends.Marks{Key: key}}.line(vmid)
}

// readDescription is the note in a description; ok is false where there is none, or
// one of another VMID, or two that differ. It never is complete: the tags tell that.
func readDescription(vmid int, description string) (n note, ok bool) {
	var found map[string]string
	for line := range strings.Lines(description) {
		line = strings.TrimSpace(line)
		if !lineForm.MatchString(line) {
			continue
		}
		values := map[string]string{}
		for part := range strings.FieldsSeq(strings.TrimPrefix(line, lineStart)) {
			name, value, _ := strings.Cut(part, "=")
			if _, twice := values[name]; twice {
				return note{}, false
			}
			values[name] = value
		}
		if values[nameVMID] != strconv.Itoa(vmid) || values[nameKey] == "" {
			continue
		}
		if found != nil {
			return note{}, false
		}
		found = values
	}
	if found == nil {
		return note{}, false
	}
	return noteOf(found), true
}

// maxDescription is the API's limit in bytes.
const maxDescription = 8192

// describe is a description with a note: our line first, then what others wrote.
func describe(n note, vmid int, description string) string {
	rest := withoutLine(description)
	out := n.line(vmid)
	if rest != "" {
		out += "\n\n" + rest
	}
	if len(out) > maxDescription {
		out = strings.ToValidUTF8(out[:maxDescription], "")
	}
	return strings.TrimRight(out, " \t\r\n\f\v")
}

// withoutLine is what others wrote into a description: no line of ours, of whatever
// VM, stays.
func withoutLine(description string) string {
	var kept []string
	for line := range strings.SplitSeq(description, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), lineStart) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// checkNote refuses marks that a tag can't hold.
func checkNote(n note) error {
	for name, v := range n.values(0) {
		if !valueForm.MatchString(v) || v != strings.ToLower(v) || len(v) > maxTag-len(markPrefix)-len(name)-1 {
			return backends.Errorf(backends.InvalidInput, "The mark %s can't be written as a tag of Proxmox VE.", name)
		}
	}
	return nil
}

func checkTag(tag string) string {
	switch {
	case !tagForm.MatchString(tag):
		return strconv.Quote(tag) + " is not a tag that Proxmox VE keeps as it is: lower-case letters, digits, underscores, and then also hyphens, dots and plus signs."
	case len(tag) > maxTag:
		return "A tag has at most " + strconv.Itoa(maxTag) + " characters."
	case isOurs(tag) || strings.HasPrefix(tag, ManagedTag):
		return strconv.Quote(tag) + " is one of the provider's own tags."
	}
	return ""
}

// labelTag is the tag of a label: key.value, or the key alone.
func labelTag(key, value string) string {
	if value == "" {
		return key
	}
	return key + "." + value
}
