// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"strings"
	"testing"
)

func TestHostnames(t *testing.T) {
	for name, good := range map[string]bool{
		"web-0": true, "0": true, "web.example.com": true, strings.Repeat("a", 63): true, "xn--bcher-kva": true,
		"": false, "Web": false, "web_0": false, "-web": false, "web-": false, "web.": false, ".web": false, "a..b": false,
		"a.-b": false, "wéb": false, "web 0": false, "web\n": false, strings.Repeat("a", 64): false,
	} {
		if problem := HostnameProblem(name); (problem == "") != good {
			t.Errorf("%q: %q", name, problem)
		}
	}
}
