// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func testNote() note {
	return note{marks: testSpec().Marks, image: "9000", offer: "2c-4g-20d", created: time.Unix(1_790_000_000, 0).UTC()}
}

// TestNoteForm holds the form that people search for, and that other versions of this
// provider read.
func TestNoteForm(t *testing.T) {
	n := testNote()
	const line = "better-compute: vmid=4711 key=inst_0123456789abcdefghjkmnpqrs account=pacct_0123456789abcdefghjkmnpqrs " +
		"pool=pool_0123456789abcdefghjkmnpqrs claim=c0ffee digest=iabcdef-o123456-r99zzzz image=9000 offer=2c-4g-20d created=1790000000"
	if got := n.line(4711); got != line {
		t.Errorf("%s", got)
	}
	n.marks.Complete, n.protected = true, true
	const tags = "bc-account-pacct_0123456789abcdefghjkmnpqrs;bc-claim-c0ffee;bc-created-1790000000;bc-digest-iabcdef-o123456-r99zzzz;bc-image-9000;" +
		"bc-key-inst_0123456789abcdefghjkmnpqrs;bc-offer-2c-4g-20d;bc-pool-pool_0123456789abcdefghjkmnpqrs;bc-protected-yes;bc-vmid-4711;better-compute"
	if got := joinTags(n.tags(4711)); got != tags {
		t.Errorf("%s", got)
	}
	for tag := range strings.SplitSeq(tags, ";") {
		if !tagForm.MatchString(tag) || !isOurs(tag) {
			t.Errorf("%s is no tag, or not ours", tag)
		}
	}
}

func TestReadDescription(t *testing.T) {
	n := testNote()
	line := n.line(4711)
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"alone":              {line, true},
		"blanks around it":   {"\n  " + line + " \r\nmore", true},
		"people around it":   {"# Web\n\n" + line + "\n\nask Ann", true},
		"twice the same VM":  {line + "\n" + line, false},
		"a template's below": {line + "\n" + n.line(1), true},
		"another VMID":       {n.line(1), false},
		"no key":             {"better-compute: vmid=4711 claim=x", false},
		"in a sentence":      {"see " + line, false},
		"a name twice":       {line + " key=inst_x", false},
		"something behind":   {line + " and more", false},
		"nothing":            {"", false},
	} {
		got, ok := readDescription(4711, test.text)
		if ok != test.want || ok && got != n {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

// TestDescribe keeps what others wrote, whatever is written how often.
func TestDescribe(t *testing.T) {
	n := testNote()
	text := describe(n, 4711, "Debian 13\n\nask Ann\n")
	if !strings.HasSuffix(text, "\n\nDebian 13\n\nask Ann") {
		t.Errorf("%q", text)
	}
	other := n
	other.marks.Claim = "another"
	again := describe(other, 4711, text)
	if got, ok := readDescription(4711, again); !ok || got != other || withoutLine(again) != withoutLine(text) {
		t.Errorf("%q", again)
	}
	long := describe(n, 4711, strings.Repeat("ü", maxDescription))
	if _, ok := readDescription(4711, long); !ok || len(long) > maxDescription {
		t.Errorf("%d bytes, %v", len(long), ok)
	}
}

// TestWhoseOptions holds which of tags and description decides.
func TestWhoseOptions(t *testing.T) {
	n := testNote()
	complete := n
	complete.marks.Complete = true
	complete.marks.Claim = "taken"
	stale := n
	stale.marks.Key = "inst_other"
	tags := func(n note) scalar { return scalar(joinTags(n.tags(4711))) }
	for name, test := range map[string]struct {
		config vmConfig
		want   note
		ok     bool
	}{
		"complete: the tags":             {vmConfig{"tags": tags(complete), "description": scalar(n.line(4711))}, complete, true},
		"half made: the description":     {vmConfig{"tags": tags(stale), "description": scalar(n.line(4711))}, n, true},
		"fresh clone":                    {vmConfig{"tags": "debian", "description": scalar(n.line(4711))}, n, true},
		"marker removed by hand":         {vmConfig{"tags": scalar(joinTags(n.tags(4711))), "description": scalar(n.line(4711))}, n, true},
		"tags of a half-made VM alone":   {vmConfig{"tags": tags(n)}, note{}, false},
		"the marker alone":               {vmConfig{"tags": "better-compute"}, note{}, false},
		"tags of another VMID":           {vmConfig{"tags": scalar(joinTags(complete.tags(1)))}, note{}, false},
		"a stranger's":                   {vmConfig{"tags": "prod", "description": "better-compute is great"}, note{}, false},
		"separated and cased as one may": {vmConfig{"tags": scalar(strings.ToUpper(strings.ReplaceAll(string(tags(complete)), ";", ", ")))}, complete, true},
	} {
		got, ok := test.config.note(4711)
		if ok != test.ok || got != test.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestCheckTag(t *testing.T) {
	for tag, good := range map[string]bool{
		"web": true, "role.web": true, "_x": true, "a+b": true, "0": true,
		"Web": false, "-x": false, "a b": false, "a;b": false, "ü": false, "": false, "better-compute": false,
		"better-compute-x": false, "bc-key-x": false, "bc-vmid-1": false, "bc-other": true, strings.Repeat("x", 129): false,
	} {
		if got := checkTag(tag) == ""; got != good {
			t.Errorf("%q: %v", tag, got)
		}
	}
	for _, labels := range []map[string]string{{"Role": "x"}, {"role": "Web"}, {"better-compute": ""}, {"a/b": "c"}} {
		if issues := checkLabels(labels); len(issues) != 1 || issues[0].Path.String() != "labels" {
			t.Errorf("%v: %v", labels, issues)
		}
	}
}

func FuzzMarks(f *testing.F) {
	f.Add(4711, testNote().line(4711), joinTags(testNote().tags(4711)))
	f.Add(1, "better-compute: vmid=1 key=k", "bc-vmid-1;bc-key-k;better-compute")
	f.Add(0, "better-compute:", ";;, ")
	f.Fuzz(func(t *testing.T, vmid int, description, tags string) {
		split := splitTags(tags)
		if n, ok := readTags(vmid, split); ok {
			// What was read is what is written, foreign tags aside.
			back, again := readTags(vmid, n.tags(vmid))
			if !again || back != n {
				t.Errorf("%+v, then %+v", n, back)
			}
		}
		for _, tag := range foreignTags(split) {
			if isOurs(tag) {
				t.Errorf("%q", tag)
			}
		}
		n, ok := readDescription(vmid, description)
		if !ok {
			return
		}
		if n.marks.Complete || !n.marks.Managed || n.marks.Key == "" {
			t.Errorf("%+v", n)
		}
		if len(description) > maxDescription/2 {
			return
		}
		back, ok := readDescription(vmid, describe(n, vmid, description))
		n.protected = false
		if !ok || back != n {
			t.Errorf("%+v, then %+v, %v", n, back, ok)
		}
	})
}

func TestMarksThatFit(t *testing.T) {
	n := testNote()
	if err := checkNote(n); err != nil {
		t.Error(err)
	}
	n.marks.Claim = backends.WithoutUserinfo("a b")
	if checkNote(n) == nil {
		t.Error("a claim with a blank")
	}
	n = testNote()
	n.marks.Digest = strings.Repeat("iabcdef-", 7) + "iabcdef"
	if err := checkNote(n); err != nil {
		t.Error("the longest digest: ", err)
	}
}

// TestLabelsKeepTags gets from labels the very tags that they were read from.
func TestLabelsKeepTags(t *testing.T) {
	tags := []string{"a.b", "a.c", "a.", "d", "e.f.g", "better-compute"}
	labels := labelsOf(tags)
	if labels["a"] != "b" || labels["e"] != "f.g" {
		t.Errorf("%v", labels)
	}
	if got := joinTags(tagsOf(labels)); got != joinTags(foreignTags(tags)) {
		t.Errorf("%s", got)
	}
}
