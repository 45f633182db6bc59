// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The first sentence, which a diagnostic shows as its summary, says what the limit
// is, what is taken and what is asked for.
func TestLimitsSayWhatIsTakenAndAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := func(err error, want string) {
			t.Helper()
			if e := backends.AsError(err); e == nil || e.Code != backends.QuotaExceeded || len(e.Message) < len(want) || e.Message[:len(want)] != want {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		c := newDiskCloud()
		account, pool := openDisks(t, c)
		disk, one := int64(35), int64(1)
		pool.Limits.DiskGiB, pool.Limits.Instances = &disk, &one
		for _, name := range []string{"data", "logs"} {
			if _, err := account.CreateVolume(t.Context(), volumeWish(pool, backends.BlockVolume, name)); err != nil {
				t.Fatal(err)
			}
		}
		said(account.FitsVolume(t.Context(), pool, "pvol_more", 30), `The pool "web" may have 35 GiB of volumes: 20 are taken, and 30 more are asked for. `)
		said(account.PlanVolume(t.Context(), pool, "pvol_more", 30), `The pool "web" may have 35 GiB of volumes: 20 are taken, and 30 more are asked for. `)
		if err := account.Plan(t.Context(), pool, "inst_first", nil); err != nil {
			t.Fatal(err)
		}
		said(account.Plan(t.Context(), pool, "inst_second", nil), `The pool "web" may have 1 instance: 1 is taken, and one more is asked for. `)
	})
}
