// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	all := []string{"cx23", "cx33", "cax11", "cpx22"}
	for name, want := range map[string]string{"cx22": "cx23 or cx33", "CX23": "cx23", "quite-another-name": "cx23, cx33, cax11 or cpx22"} {
		if got := Choice(Near(name, all, Nearest)); !strings.HasPrefix(got, strings.Split(want, " ")[0]) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Choice(nil); got == "" {
		t.Error("no words for no choice")
	}
}
