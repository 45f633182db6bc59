// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"net/netip"
	"net/url"
	"strings"
)

// EndpointProblem says what is wrong with an API's base url, "" when nothing is. It
// must be https, unless it is on this machine. The text never repeats the value: it
// may hold a password. One spelling per endpoint (no trailing slash) keeps accounts
// with one cloud at one client. example is the vendor's own.
func EndpointProblem(endpoint, example string) string {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "The endpoint is not a url such as " + example + "."
	case u.User != nil || strings.Contains(endpoint, "@"): // user:12/x@host is a host, a port and a path
		return "The endpoint must hold no user name or password: credentials go into the token's reference."
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(endpoint, "#"):
		return "The endpoint must have no query and no fragment."
	case strings.HasSuffix(u.Path, "/"):
		return "The endpoint must not end in a slash."
	case u.Scheme == "https" || (u.Scheme == "http" && isLoopback(u.Hostname())):
		return ""
	default:
		return "The endpoint must be https, unless its host is this machine (127.0.0.1, ::1, localhost)."
	}
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
