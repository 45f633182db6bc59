// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"strings"
	"unicode"
)

// LongestPrintable bounds what a message repeats of a cloud's answer, in bytes.
const LongestPrintable = 500

// Printable is text of a cloud's answer, fit for a terminal and a log: bounded by
// [LongestPrintable], on one line, and without what a terminal obeys rather than shows.
func Printable(s string) string {
	return cut(s, LongestPrintable)
}

// longestMessage bounds an error's message in bytes: a name in it may be as long as an
// answer.
const longestMessage = 8 << 10

func cut(s string, most int) string {
	if len(s) <= most {
		return OneLine(s)
	}
	return OneLine(strings.ToValidUTF8(s[:most], "")) + "…"
}

// OneLine is text without what a terminal obeys, line breaks included: each such
// character becomes a space.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// Shown is text of several lines, fit for a terminal: of what a terminal obeys, only
// line breaks and tabs are left.
func Shown(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// obeyed tells whether a terminal may do something for a character: controls, those that
// turn the direction of what follows or are not seen (U+202E, U+200B, U+FEFF), and the
// line breaks that only Unicode knows.
func obeyed(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
