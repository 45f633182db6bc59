// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	version = "1.2.3"
	t.Cleanup(func() { version = "dev" })
	for line, want := range map[string]struct {
		status         int
		stdout, stderr string // what they begin with
	}{
		"-version":          {0, "terraform-provider-bettercompute 1.2.3\n", ""},
		"version":           {0, "terraform-provider-bettercompute 1.2.3\n", ""},
		"-h":                {0, "Usage: terraform-provider-bettercompute [command]\n", ""},
		"help":              {0, "Usage: ", ""},
		"serve":             {usageStatus, "", `terraform-provider-bettercompute: unexpected argument "serve"`},
		"-version extra":    {usageStatus, "", `terraform-provider-bettercompute: unexpected argument "extra"`},
		"-debug -address x": {usageStatus, "", `terraform-provider-bettercompute: unexpected argument "-address"`},
		"emulate -h":        {0, "", "Usage: terraform-provider-bettercompute emulate"},
		"emulate -hetzner 192.0.2.1:80 -control 127.0.0.1:0": {2, "", "emulate: "},
	} {
		var stdout, stderr bytes.Buffer
		status := run(strings.Fields(line), &stdout, &stderr)
		if status != want.status || !strings.HasPrefix(stdout.String(), want.stdout) || !strings.HasPrefix(stderr.String(), want.stderr) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", line, status, stdout.String(), stderr.String())
		}
		if want.stdout == "" && stdout.Len() > 0 {
			t.Errorf("%q: an error wrote to stdout: %q", line, stdout.String())
		}
	}
}
