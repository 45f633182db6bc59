// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is an error as the API words it.
type apiError struct {
	status  int
	id      string
	message string
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%s)", e.message, e.id) }

func refused(status int, id, format string, args ...any) error {
	return &apiError{status, id, fmt.Sprintf(format, args...)}
}

// notFound is the answer for whatever doesn't exist.
func notFound() error {
	return refused(http.StatusNotFound, "not_found", "The resource you were accessing could not be found.")
}

// unprocessable is the answer to what can't be done.
func unprocessable(format string, args ...any) error {
	return refused(http.StatusUnprocessableEntity, "unprocessable_entity", format, args...)
}

func badRequest(format string, args ...any) error {
	return refused(http.StatusBadRequest, "bad_request", format, args...)
}

func conflict(message string) error {
	return &apiError{http.StatusConflict, "conflict", message}
}

func forbidden(message string) error {
	return &apiError{http.StatusForbidden, "forbidden", message}
}

// pendingEvent is the answer while a Droplet has an event: one at a time.
func pendingEvent() error { return unprocessable("Droplet already has a pending event.") }

// statusError is the error for a status that a fault asks for.
func statusError(status int) *apiError {
	known := map[int]apiError{
		http.StatusBadRequest:          {id: "bad_request", message: "The request was malformed."},
		http.StatusUnauthorized:        {id: "unauthorized", message: "Unable to authenticate you."},
		http.StatusForbidden:           {id: "forbidden", message: "You do not have access for the attempted action."},
		http.StatusNotFound:            {id: "not_found", message: "The resource you were accessing could not be found."},
		http.StatusConflict:            {id: "conflict", message: "The request conflicts with the state of the resource."},
		http.StatusUnprocessableEntity: {id: "unprocessable_entity", message: "The request could not be processed."},
		http.StatusTooManyRequests:     {id: "too_many_requests", message: "API rate limit exceeded."},
		http.StatusInternalServerError: {id: "server_error", message: "Unexpected server-side error"},
		http.StatusServiceUnavailable:  {id: "service_unavailable", message: "Server Temporarily Unavailable"},
	}
	e, found := known[status]
	if !found {
		text := http.StatusText(status)
		if text == "" {
			text = "Unknown error"
		}
		e = apiError{id: strings.ReplaceAll(strings.ToLower(text), " ", "_"), message: text}
	}
	e.status = status
	return &e
}
