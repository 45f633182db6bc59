// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// readable are the characters besides letters and digits that stand for
// themselves: RFC 3986's unreserved ones and those that a reference or an address
// needs to be readable. Quotes, $, !, & and their like, though a query may hold
// some, are encoded: shells and other decoders would read them their own way.
const readable = "-._~:/@,="

// encode percent-encodes what isn't readable; a comma too in an element of a list.
func encode(s string, element bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte(readable, c) >= 0 && (c != ',' || !element):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// decode undoes percent-encoding and nothing else: a + is a +. Terraform's texts
// are UTF-8, so nothing else comes out.
func decode(s string) (string, bool) {
	out, err := url.PathUnescape(s)
	return out, err == nil && utf8.ValidString(out)
}
