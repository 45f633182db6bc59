// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is an error of the API: a status, a text, and for bad parameters what
// is wrong with each.
type apiError struct {
	status  int
	message string
	params  map[string]string
}

func (e *apiError) Error() string { return e.message }

// reason is what the status line says: the first line of the text.
func (e *apiError) reason() string {
	first, _, _ := strings.Cut(e.message, "\n")
	return first
}

func refused(status int, format string, args ...any) error {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

// died is the answer where the real API's code dies: a 500.
func died(format string, args ...any) error {
	return refused(http.StatusInternalServerError, format, args...)
}

// badParam is the refusal of one parameter.
func badParam(name, format string, args ...any) error {
	return badParams(map[string]string{name: fmt.Sprintf(format, args...)})
}

func badParams(params map[string]string) error {
	return &apiError{status: http.StatusBadRequest, message: "Parameter verification failed.", params: params}
}

// forbidden is the refusal for want of a privilege.
func forbidden(path, privilege string) error {
	return refused(http.StatusForbidden, "Permission check failed (%s, %s)", path, privilege)
}

// The statuses of a proxy that can't reach the node: those of the HTTP client
// that Proxmox VE uses between nodes.
const (
	statusConnect = 595
	statusRequest = 596
)

// unreachable is the answer for a node that is down.
func unreachable() error { return refused(statusConnect, "No route to host") }

// missing is the answer for a VM that isn't on the node.
func missing(node string, vmid int) error {
	return died("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", node, vmid)
}

// lockTimeout is the text for a lock that could not be had.
func lockTimeout(vmid int) string {
	return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout", vmid)
}

// statusError is the error for a status that a fault asks for.
func statusError(status int) *apiError {
	known := map[int]string{
		http.StatusUnauthorized:   "No ticket",
		http.StatusForbidden:      "Permission check failed",
		http.StatusBadRequest:     "Parameter verification failed.",
		http.StatusNotFound:       "no such resource",
		http.StatusNotImplemented: "Method not implemented",
		statusConnect:             "No route to host",
		statusRequest:             "Connection timed out",
		599:                       "Too many redirections",
	}
	message, found := known[status]
	if !found {
		if message = http.StatusText(status); message == "" {
			message = "Unknown error"
		}
	}
	return &apiError{status: status, message: message}
}
