// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"strings"
	"unicode"
)

// LongestPrintable bounds what a message repeats of a cloud's answer, in bytes.
const LongestPrintable = 500

// Printable is text of a cloud's answer, fit for a terminal: bounded by
// [LongestPrintable] and without control characters.
func Printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > LongestPrintable {
		s = strings.ToValidUTF8(s[:LongestPrintable], "") + "…"
	}
	return s
}
