// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is an error as the API words it.
type apiError struct {
	status  int
	code    string
	message string
	// details is null or an object, and always present: clients rely on it.
	details any
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%s)", e.message, e.code) }

// fieldError is an entry of details.fields.
type fieldError struct {
	Name     string   `json:"name"`
	Messages []string `json:"messages,omitempty"`
}

// fields collects what is wrong with the fields of a request.
type fields []fieldError

func (f *fields) add(name, format string, args ...any) {
	*f = append(*f, fieldError{Name: name, Messages: []string{fmt.Sprintf(format, args...)}})
}

// err is nil when nothing was wrong.
func (f fields) err() error {
	if len(f) == 0 {
		return nil
	}
	names := make([]string, len(f))
	for i, field := range f {
		names[i] = fmt.Sprintf("'%s'", field.Name)
	}
	noun := "field"
	if len(f) > 1 {
		noun = "fields"
	}
	return &apiError{http.StatusUnprocessableEntity, "invalid_input",
		fmt.Sprintf("invalid input in %s %s", noun, strings.Join(names, ", ")),
		map[string]any{"fields": f}}
}

// invalid is invalid_input without fields, which has empty details.
func invalid(format string, args ...any) error {
	return &apiError{http.StatusUnprocessableEntity, "invalid_input", fmt.Sprintf(format, args...), map[string]any{}}
}

func refused(status int, code, format string, args ...any) error {
	return &apiError{status, code, fmt.Sprintf(format, args...), nil}
}

// notFound names the thing as the API does: "server with ID '42' not found".
func notFound(kind string, id int64) error {
	return refused(http.StatusNotFound, "not_found", "%s with ID '%d' not found", kind, id)
}

func notUnique(kind, field string) error {
	return &apiError{http.StatusConflict, "uniqueness_error", fmt.Sprintf("%s %s is already used", kind, field),
		map[string]any{"fields": []fieldError{{Name: field}}}}
}

// locked names the kind of thing that an action works on. The words for a server
// are the real API's; those for a volume follow them.
func locked(kind string) error {
	return refused(http.StatusLocked, "locked", "cannot perform operation because %s is locked", kind)
}

func unavailable() error {
	return refused(http.StatusPreconditionFailed, "resource_unavailable", "error during placement")
}

// overLimit names the limit that is reached.
func overLimit(limit, message string) error {
	return &apiError{http.StatusForbidden, "resource_limit_exceeded", message,
		map[string]any{"limits": []map[string]string{{"name": limit}}}}
}

// noSpace is the documented refusal of POST /volumes.
func noSpace() error {
	return refused(http.StatusUnprocessableEntity, "no_space_left_in_location", "no space left in location")
}

func gone(announcement string) error {
	return &apiError{http.StatusGone, "deprecated_api_endpoint", "the api endpoint is deprecated and no longer available",
		map[string]any{"announcement": announcement}}
}

// statusError is the error for a status that a fault asks for.
func statusError(status int) *apiError {
	codes := map[int]string{
		http.StatusBadRequest:          "json_error",
		http.StatusUnauthorized:        "unauthorized",
		http.StatusForbidden:           "forbidden",
		http.StatusNotFound:            "not_found",
		http.StatusMethodNotAllowed:    "method_not_allowed",
		http.StatusConflict:            "conflict",
		http.StatusGone:                "deprecated_api_endpoint",
		http.StatusPreconditionFailed:  "resource_unavailable",
		http.StatusUnprocessableEntity: "invalid_input",
		http.StatusLocked:              "locked",
		http.StatusTooManyRequests:     "rate_limit_exceeded",
		http.StatusInternalServerError: "server_error",
		http.StatusBadGateway:          "bad_gateway",
		http.StatusServiceUnavailable:  "unavailable",
		http.StatusGatewayTimeout:      "timeout",
	}
	code, known := codes[status]
	if !known {
		code = "unknown_error"
	}
	err := &apiError{status: status, code: code, message: strings.ToLower(http.StatusText(status))}
	if status == http.StatusUnprocessableEntity {
		err.details = map[string]any{}
	}
	if err.message == "" {
		err.message = "unknown error"
	}
	return err
}
