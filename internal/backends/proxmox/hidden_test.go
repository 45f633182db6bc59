// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestHiddenStranger: a VM was removed by hand, and its VMID taken by something that
// the token doesn't see. It is gone where ours would be seen, since it was in a resource
// pool that the token may see; where the token has lost that right, it may be ours, and
// little is known of it.
func TestHiddenStranger(t *testing.T) {
	for name, test := range map[string]struct {
		deny emulated.Denials
		gone bool
	}{
		"seen if it were ours": {nil, true},
		"the right is lost":    {emulated.Denials{{Path: "/pool/tofu", Privilege: "VM.Audit"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token, _, _ := strings.Cut(testToken, "=")
				options := slow()
				options.Grants = poolToken(token)
				c, cluster := emulate(t, options, backends.Values{"pool": "tofu"})
				m := mustCreate(t, c, testSpec())
				before := putStranger(cluster, atoi(t, m.ID))
				cluster.SetDenials(test.deny)
				var said []string
				ctx := backends.WithWarnings(t.Context(), func(text string) { said = append(said, text) })
				got, err := c.GetMachine(ctx, m.ID)
				warned := len(said) == 1 && strings.Contains(said[0], "taken out of the pool")
				switch {
				case test.gone && !warned:
					t.Errorf("%q", said)
				case test.gone:
					wantCode(t, err, backends.NotFound)
				case err != nil || !got.Partial || got.Marks.Managed || warned || !strings.Contains(got.Message, "state rm"):
					t.Errorf("%+v, %v, %q", got, err, said)
				}
				// To act on it is refused whatever it is.
				wantCode(t, c.DeleteMachine(t.Context(), m), backends.AccessDenied)
				if test.gone {
					if again := mustCreate(t, c, testSpec()); again.ID == m.ID {
						t.Error("made in the stranger's VMID")
					}
				}
				if v := emulatedVM(t, cluster, m.ID); v.Config["description"] != before["description"] {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

// TestHiddenCloneIsPending: a token doesn't see its own clone before it is in the
// resource pool; it is neither gone nor an error.
func TestHiddenCloneIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, _, _ := strings.Cut(testToken, "=")
		options := slow()
		options.Grants = poolToken(token)
		c, cluster := emulate(t, options, backends.Values{"pool": "tofu"})
		ctx, cancel := context.WithTimeout(t.Context(), slow().Boot/8)
		defer cancel()
		m, err := c.MakeMachine(ctx, testSpec())
		if err == nil || m.ID == "" {
			t.Fatal(m, err)
		}
		for looks := 0; ; looks++ {
			got, err := c.GetMachine(t.Context(), m.ID)
			switch {
			case err != nil:
				t.Fatal(err)
			case got.Partial:
				if got.State != backends.StatePending {
					t.Errorf("%+v", got)
				}
				if err := c.pause(t.Context(), looks); err != nil {
					t.Fatal(err)
				}
				continue
			case looks == 0 || got.Marks.Claim != testClaim:
				t.Errorf("seen after %d looks: %+v", looks, got)
			}
			break
		}
		if len(cluster.Machines()) != 1 {
			t.Errorf("%+v", cluster.Machines())
		}
	})
}
