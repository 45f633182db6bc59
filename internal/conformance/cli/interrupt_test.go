// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package cli_test

import (
	"net/http"
)

// interrupting calls interrupt once the first server was made.
func interrupting(cloud http.Handler, interrupt func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cloud.ServeHTTP(w, r)
		if r.Method == http.MethodPost && r.URL.Path == "/v1/servers" {
			interrupt()
		}
	})
}
