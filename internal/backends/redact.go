// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"regexp"
	"strings"
)

var (
	// quotedText is what Go's %q prints, whatever is in it.
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// bareWord is a run without spaces and quotes.
	bareWord = regexp.MustCompile(`[^\s"]+`)
)

// WithoutUserinfo is a text for a message in which every url, and what was meant to
// be one, has lost its user name and password. A malformed url has no parts that
// can be told apart, so all before its last @ goes, but for the scheme.
func WithoutUserinfo(text string) string {
	text = quotedText.ReplaceAllStringFunc(text, func(quoted string) string {
		return `"` + withoutUserinfo(quoted[1:len(quoted)-1]) + `"`
	})
	return bareWord.ReplaceAllStringFunc(text, withoutUserinfo)
}

func withoutUserinfo(word string) string {
	at := strings.LastIndexByte(word, '@')
	if at < 0 {
		return word
	}
	scheme := ""
	if i := strings.Index(word[:at], "://"); i >= 0 {
		scheme = word[:i+len("://")]
	}
	return scheme + "…" + word[at:]
}

// badURL is how net/url begins the error of a text that is no url. It quotes the
// text, and again parts of it ("invalid port \":secret\"") that nothing tells from a
// password.
var badURL = regexp.MustCompile(`parse "(?:[^"\\]|\\.)*": .*`)

// badProxy is how net/http begins the error of a proxy's address that is no url.
// The rest of that error quotes the address and holds one of [badURL].
const badProxy = "invalid proxy address"

// causeText is the text of an error from below, fit for a message.
func causeText(err error) string {
	text := err.Error()
	if strings.Contains(text, badProxy) {
		return "the proxy's address in HTTPS_PROXY or HTTP_PROXY is not a url (it is not shown, since it may hold a password)"
	}
	return WithoutUserinfo(badURL.ReplaceAllString(text, "an address that is not a url"))
}
