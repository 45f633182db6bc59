// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	long := strings.Repeat("ä", 400) + "\x1b[31m\n"
	if got := Printable(long); strings.ContainsAny(got, "\x1b\n") || len(got) > LongestPrintable+len("…") || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
	if got := Printable("a\x1b[31mb\nc"); got != "a [31mb c" {
		t.Errorf("got %q", got)
	}
}
