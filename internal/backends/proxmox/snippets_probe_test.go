// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"os"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/sftptest"
)

// TestProbe: a place for user data that can't be written to is known, and a good one
// is left as it was.
func TestProbe(t *testing.T) {
	server := sftptest.New(t, "")
	for name, test := range map[string]struct {
		store snippetStore
		good  bool
	}{
		"folder":      {directoryStore(t.TempDir()), true},
		"no folder":   {directoryStore("/nosuch"), false},
		"host":        {sftpStoreOf(server, nil), true},
		"no path":     {sftpStoreOf(server, backends.Values{"path": "/missing"}), false},
		"unreachable": {sftpStoreOf(server, backends.Values{"host": "127.0.0.1:1"}), false},
	} {
		err := test.store.probe(t.Context())
		if (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "user data") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(server.Folder); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
