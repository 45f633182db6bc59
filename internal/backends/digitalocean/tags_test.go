// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestMarks(t *testing.T) {
	n := tagNames{"example-org"}
	marks := testSpec().Marks
	marks.Complete, marks.GoesWithMachine, marks.Volume = true, true, "data"
	tags := n.write(marks)
	want := []string{
		"example-org:key:inst_0123456789abcdefghjkmnpqrs", "example-org:account:pacct_0123456789abcdefghjkmnpqrs",
		"example-org:pool:pool_0123456789abcdefghjkmnpqrs", "example-org:digest:iabcdef-o123456-r99zzzz", "example-org:volume:data",
		"example-org:goes-with-machine", "example-org:claim:c0ffee", "example-org", "example-org:complete",
	}
	if !slices.Equal(tags, want) {
		t.Errorf("got %v", tags)
	}
	for _, tag := range tags {
		if checkTag(tag, "other") != "" {
			t.Errorf("%s can't be a tag", tag)
		}
	}
	slices.Reverse(tags) // the API has no order
	if got := n.read(append(tags, "web", "example-org:stray:x", "example-organic")); got != marks {
		t.Errorf("read %+v", got)
	}
	// The first spelling of a tag there ever was is what comes back.
	for i := range tags {
		tags[i] = strings.ToUpper(tags[i])
	}
	if got := n.read(tags); got != marks {
		t.Errorf("read in capitals %+v", got)
	}
	unmanaged := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == "EXAMPLE-ORG" })
	if got := n.read(unmanaged); got != (backends.Marks{}) {
		t.Errorf("an unmanaged object has marks: %+v", got)
	}
	if got := n.write(backends.Marks{}); len(got) != 0 {
		t.Errorf("no marks are the tags %v", got)
	}
}

func TestOfTwoClaimsTheSmallestWins(t *testing.T) {
	n := tagNames{DefaultTagPrefix}
	for _, tags := range [][]string{
		{"better-compute", "better-compute:claim:b", "better-compute:claim:a"},
		{"better-compute:claim:a", "better-compute:claim:b", "better-compute", "better-compute:claim:"},
	} {
		if got := n.read(tags).Claim; got != "a" {
			t.Errorf("%v: %q", tags, got)
		}
	}
}

func TestLabels(t *testing.T) {
	n := tagNames{DefaultTagPrefix}
	for name, tt := range map[string]struct {
		tags []string
		want map[string]string
	}{
		"none":              {nil, map[string]string{}},
		"ours":              {[]string{"better-compute", "Better-Compute:claim:x", "better-compute:stray"}, map[string]string{}},
		"like ours":         {[]string{"better-compute-2", "better-computer:a"}, map[string]string{"better-compute-2": "", "better-computer": "a"}},
		"key and value":     {[]string{"role:web"}, map[string]string{"role": "web"}},
		"two colons":        {[]string{"k8s:worker:1"}, map[string]string{"k8s": "worker:1"}},
		"no value":          {[]string{"web"}, map[string]string{"web": ""}},
		"colon at the end":  {[]string{"web:"}, map[string]string{"web:": ""}},
		"colon first":       {[]string{":web"}, map[string]string{":web": ""}},
		"one key, twice":    {[]string{"env:b", "env:a"}, map[string]string{"env": "a", "env:b": ""}},
		"with and without":  {[]string{"env:a", "env"}, map[string]string{"env": "", "env:a": ""}},
		"the case is kept":  {[]string{"Role:Web"}, map[string]string{"Role": "Web"}},
		"a tag like a pair": {[]string{"a:b", "a:b:c"}, map[string]string{"a": "b", "a:b:c": ""}},
	} {
		got := n.labels(tt.tags)
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		// Every tag can be told from its label again.
		var back []string
		for k, v := range got {
			back = append(back, labelTag(k, v))
		}
		for _, tag := range tt.tags {
			if !n.ours(tag) && !slices.Contains(back, tag) {
				t.Errorf("%s: %s is lost in %v", name, tag, got)
			}
		}
	}
}

func TestForeignTagsOfAWish(t *testing.T) {
	got := foreign(map[string]string{"role": "web", "edge": ""}, []string{"firewall", "Role:Web", "k8s:1"})
	if want := []string{"edge", "role:web", "firewall", "k8s:1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCheckLabels(t *testing.T) {
	n := tagNames{DefaultTagPrefix}
	for name, tt := range map[string]struct {
		labels map[string]string
		says   []string // one per issue
	}{
		"good":               {map[string]string{"role": "web", "edge": "", "v": "1-2_3"}, nil},
		"colon in a value":   {map[string]string{"k8s": "worker:1"}, nil},
		"dot":                {map[string]string{"version": "1.2"}, []string{`"version:1.2"`}},
		"slash":              {map[string]string{"example/role": "web"}, []string{"letters, digits"}},
		"space":              {map[string]string{"role": "web server"}, []string{"letters, digits"}},
		"umlaut":             {map[string]string{"größe": ""}, []string{"letters, digits"}},
		"colon in a key":     {map[string]string{"a:b": "c"}, []string{"colon"}},
		"empty key":          {map[string]string{"": "x"}, []string{"can't be"}},
		"too long":           {map[string]string{"a": strings.Repeat("b", 254)}, []string{"255"}},
		"longest":            {map[string]string{"a": strings.Repeat("b", 253)}, nil},
		"reserved":           {map[string]string{"better-compute": ""}, []string{"reserved"}},
		"reserved, a mark":   {map[string]string{"better-compute": "claim:x"}, []string{"reserved"}},
		"reserved, capitals": {map[string]string{"Better-Compute": "x"}, []string{"reserved"}},
		"one in two cases":   {map[string]string{"Role": "web", "role": "WEB"}, []string{"one tag"}},
		"two at once":        {map[string]string{"a.b": "", "c/d": ""}, []string{"a.b", "c/d"}},
	} {
		issues := n.checkLabels(tt.labels)
		if len(issues) != len(tt.says) {
			t.Errorf("%s: %v", name, issues)
			continue
		}
		for i, e := range issues {
			if e.Path.String() != "labels" || e.Code != backends.InvalidInput || !strings.Contains(e.Message, tt.says[i]) {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("role", "web")
	f.Add("a", "b:c")
	f.Add("better-compute", "claim:x")
	f.Add("a:", "")
	f.Add("-", ":")
	f.Fuzz(func(t *testing.T, key, value string) {
		n := tagNames{DefaultTagPrefix}
		if len(n.checkLabels(map[string]string{key: value})) > 0 {
			return
		}
		// What is accepted fits the API's rule, leaves our marks alone and comes back.
		tag := labelTag(key, value)
		if !tagForm.MatchString(tag) || len(tag) > maxTag {
			t.Errorf("accepted %q=%q", key, value)
		}
		marks := backends.Marks{Managed: true, Key: "k", Claim: "c", Complete: true}
		tags := append(n.write(marks), tag)
		if got := n.labels(tags); n.read(tags) != marks || len(got) != 1 || got[key] != value {
			t.Errorf("%q=%q: %v", key, value, got)
		}
	})
}
