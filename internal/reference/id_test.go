// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// The values were computed apart from this code, with Python's hashlib and a
// base32 written out by hand.
func TestIDs(t *testing.T) {
	account := AccountID("root", "hetzner-cloud", "main")
	pool := PoolID(account, "web")
	volume := VolumeID(pool, "data")
	for _, c := range []struct{ got, want string }{
		{account, "pacct_gdqdmy7rwzvc5fbhc3tvhwqq51"},
		{pool, "pool_gbn0jp5vcfa5kyny3xtzs6a0kk"},
		{InstanceID(pool, "web-0"), "inst_0hs305x8w4a0vz09p8tpwgjg3s"},
		{volume, "pvol_25grv3r3yp0h27qj675cbskggf"},
		{SnapshotID(volume, "first"), "psnap_9wxkfq0mgn41scqrpgreheae4r"},
		{AccountID("org:acme", "proxmox", "a.b_c"), "pacct_7pds0jrnsykjv5weycycdhm642"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestIDForm(t *testing.T) {
	form := regexp.MustCompile(`^(pacct|pool|inst|pvol|psnap)_[0-9a-hjkmnp-tv-z]{26}$`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		for _, id := range []string{AccountID(a, b, a), PoolID(a, b), InstanceID(a, b), VolumeID(a, b), SnapshotID(a, b)} {
			if !form.MatchString(id) {
				t.Fatalf("%q is not an id", id)
			}
		}
	})
}

func TestReferenceIDs(t *testing.T) {
	a := account(t, "hetzner-cloud", map[string]any{"token": "env://A"})
	n := int64(3)
	p := a.NewPool("web", true, Limits{Instances: &n})
	for _, c := range []struct {
		r    Reference
		want string
	}{
		{a, "pacct_gdqdmy7rwzvc5fbhc3tvhwqq51"},
		{p, "pool_gbn0jp5vcfa5kyny3xtzs6a0kk"},
		{p.PoolRef(), "pool_gbn0jp5vcfa5kyny3xtzs6a0kk"},
		{p.InstanceRef("web-0", ""), "inst_0hs305x8w4a0vz09p8tpwgjg3s"},
		{p.InstanceRef("web-0", "4711"), "inst_0hs305x8w4a0vz09p8tpwgjg3s"},
		{p.VolumeRef("data"), "pvol_25grv3r3yp0h27qj675cbskggf"},
		{p.VolumeRef("data").SnapshotRef("first"), "psnap_9wxkfq0mgn41scqrpgreheae4r"},
		{Reference{}, ""},
	} {
		if got := c.r.ID(); got != c.want {
			t.Errorf("ID of %s = %s, want %s", c.r, got, c.want)
		}
	}
}
