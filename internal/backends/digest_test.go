// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"regexp"
	"slices"
	"testing"
)

func TestDigestFitsAnyLabelOrTag(t *testing.T) {
	fields := map[DigestField]string{}
	for _, f := range []DigestField{
		DigestFilesystem, DigestImage, DigestKind, DigestNetwork, DigestOffer, DigestRegion, DigestSSHKeys, DigestUserData,
	} {
		fields[f] = "value of " + f.String()
	}
	d := Digest("inst_1", fields)
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(d) {
		t.Errorf("%q (%d characters) fits no label value", d, len(d))
	}
}

func TestDigestNamesWhatDiffers(t *testing.T) {
	a := Digest("k", map[DigestField]string{DigestImage: "debian", DigestOffer: "small", DigestUserData: ""})
	b := Digest("k", map[DigestField]string{DigestImage: "ubuntu", DigestOffer: "small", DigestUserData: "x"})
	if diff := DigestDifference(a, b); !slices.Equal(diff, []DigestField{DigestImage, DigestUserData}) {
		t.Errorf("differ in %v", diff)
	}
	if diff := DigestDifference(a, a); len(diff) != 0 {
		t.Errorf("the same differs in %v", diff)
	}
	if a == Digest("other", map[DigestField]string{DigestImage: "debian", DigestOffer: "small"}) {
		t.Error("two objects made from the same look the same")
	}
	if kept := DigestKeep(b, a, DigestImage); DigestMatches(kept, "k", DigestImage, "ubuntu") || !DigestMatches(kept, "k", DigestImage, "debian") {
		t.Errorf("kept %q", kept)
	}
	if !DigestMatches(a, "k", DigestUserData, "") || DigestMatches(b, "k", DigestUserData, "") {
		t.Error("an empty value is an absent field")
	}
}

func FuzzDigestDifference(f *testing.F) {
	f.Add("i000000-o111111", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(DigestDifference(a, a)) != 0 {
			t.Errorf("%q differs from itself", a)
		}
		if len(DigestDifference(a, b)) != len(DigestDifference(b, a)) {
			t.Errorf("%q and %q differ differently the other way round", a, b)
		}
	})
}

// Under another key the same inputs are known again, and what none of the values
// explains isn't taken along.
func TestDigestOfARenamedObject(t *testing.T) {
	was := Digest("old", map[DigestField]string{DigestKind: "block", DigestRegion: "fsn1", DigestFilesystem: "xfs"})
	got := DigestRekey(was, "old", "new", map[DigestField][]string{
		DigestKind: {"block"}, DigestFilesystem: {"ext4", "xfs"}, DigestRegion: {"nbg1"}, DigestNetwork: {"n"},
	})
	if want := Digest("new", map[DigestField]string{DigestKind: "block", DigestFilesystem: "xfs"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
