// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// Who changes a machine and fails must not forget its id: a create would then
// record nothing.
func TestFailuresKeepTheMachineLastSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		fails func(*http.Request) bool
		run   func(*testing.T, *Client, backends.Machine) (backends.Machine, error)
	}{
		"marking": {
			func(r *http.Request) bool { return r.Method == http.MethodPut },
			func(t *testing.T, c *Client, m backends.Machine) (backends.Machine, error) {
				return c.MarkMachine(t.Context(), m, backends.Marks{Managed: true})
			},
		},
		"finishing, first read": {func(r *http.Request) bool { return r.Method == http.MethodGet }, finish},
		"finishing, an action":  {func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/enable_backup") }, finish},
		"finishing, last read":  {nthRead(2), finish},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := emulated.New(emulated.Options{})
				armed := false
				c := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
					if armed && tt.fails(r) {
						return always(jsonAnswer(403, `{"error":{"code":"forbidden","message":"no"}}`)).RoundTrip(r)
					}
					return emulator.Transport(cloud).RoundTrip(r)
				}), &fixedSecrets{token: testToken})
				m := made(t, c)
				armed = true
				got, err := tt.run(t, c, m)
				if e := wantError(t, err); e.Reason != backends.ReasonPermission {
					t.Errorf("got %v", e)
				}
				if got.ID != m.ID || got.Marks.Key != m.Marks.Key {
					t.Errorf("the machine is lost: %+v", got)
				}
			})
		})
	}
}

func finish(t *testing.T, c *Client, m backends.Machine) (backends.Machine, error) {
	t.Helper()
	spec := testSpec()
	spec.Options = backends.Values{"backups": true}
	return c.FinishMachine(t.Context(), m, spec)
}

// nthRead selects the nth read of a server.
func nthRead(n int) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/servers/") {
			n--
			return n == 0
		}
		return false
	}
}
