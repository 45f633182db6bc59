// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code says what kind of failure an [Error] is. A diagnostic's summary begins
// with it.
type Code string

// The codes. What a cloud refuses is [ProviderError] (or [RateLimited],
// [NotFound]); the others are for what we decide ourselves.
const (
	// InvalidInput: a value that the configuration of a resource may not have.
	InvalidInput Code = "INVALID_INPUT"
	// InvalidConfig: the provider, an account or a definition is set up wrongly,
	// a secret reference that can't be resolved included.
	InvalidConfig Code = "INVALID_CONFIG"
	// InvalidState: right input at the wrong time, such as deleting an account in use.
	InvalidState Code = "INVALID_STATE"
	// Unsupported: the cloud has no such ability.
	Unsupported Code = "UNSUPPORTED"
	// Conflict: the object exists already, or someone else has claimed it.
	Conflict Code = "CONFLICT"
	// NotFound: the object is gone.
	NotFound Code = "NOT_FOUND"
	// AccessDenied: an object that is not ours to change.
	AccessDenied Code = "ACCESS_DENIED"
	// QuotaExceeded: a limit of the pool.
	QuotaExceeded Code = "QUOTA_EXCEEDED"
	// CapacityUnavailable: we found no room, such as a free VMID.
	CapacityUnavailable Code = "CAPACITY_UNAVAILABLE"
	// RateLimited: the cloud asks us to wait.
	RateLimited Code = "RATE_LIMITED"
	// ProviderError: what a cloud refuses, or a cloud that can't be reached.
	// Details hold {status, code}.
	ProviderError Code = "PROVIDER_ERROR"
)

// Reason refines an [Error] where the code alone doesn't decide what to do.
type Reason string

// The reasons.
const (
	ReasonCapacity    Reason = "capacity"    // out of stock
	ReasonCredentials Reason = "credentials" // the token is wrong: 401
	ReasonPermission  Reason = "permission"  // the token may not: 403
	ReasonQuota       Reason = "quota"       // a limit of the cloud account
	ReasonLocked      Reason = "locked"      // another action runs on the object
	ReasonProtected   Reason = "protected"   // deletion protection is on
	ReasonUnreachable Reason = "unreachable" // no answer at all
	ReasonInvalid     Reason = "invalid"     // the cloud says the input is wrong
	ReasonSecret      Reason = "secret"      // a secret reference can't be resolved
	ReasonAction      Reason = "action"      // an asynchronous action of the cloud failed
	ReasonSize        Reason = "size"        // a size that the cloud doesn't make
	// The reasons of UNSUPPORTED, in the specification's words.
	ReasonVolumes       Reason = "volumes"
	ReasonSharedVolumes Reason = "sharedVolumes"
	ReasonSnapshots     Reason = "snapshots"
)

// Error is the one error type above and below the contract.
type Error struct {
	Code    Code
	Message string // what is wrong, one sentence, never a secret
	Remedy  string // what to do, may be empty
	Path    Path   // the input at fault, may be nil
	Reason  Reason
	// Details are facts for the reader: {status, code} of the cloud's answer,
	// correlation ids, fields. Never a secret.
	Details map[string]any
	// Retryable: the call was not carried out, and the same call may succeed later.
	Retryable bool
	// Ambiguous: the call may have been carried out although no good answer came
	// (connection lost, 5xx). A read or an idempotent call can be sent again; after
	// a call that makes something, look before making again.
	Ambiguous bool
	// RetryAfter is how long to wait before a retry; 0 means the policy's own backoff.
	RetryAfter time.Duration
	Err        error // the cause, may be nil
}

// Errorf makes an [Error] with a formatted message. What a cloud says may be among
// args: the message is one line of bounded length, without what a terminal obeys.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: cut(fmt.Sprintf(format, args...), longestMessage)}
}

// Error is the code, the path and the message on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	if len(e.Path) > 0 {
		b.WriteString(e.Path.String())
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// At returns a copy of the error that points at the given input.
func (e *Error) At(path ...any) *Error {
	c := *e
	c.Path = Path(path)
	return &c
}

// WithRemedy returns a copy of the error with what to do. It may have several lines.
func (e *Error) WithRemedy(format string, args ...any) *Error {
	c := *e
	c.Remedy = Shown(fmt.Sprintf(format, args...))
	return &c
}

// AsError finds the [Error] in err's chain; nil if there is none.
func AsError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// HasCode tells whether err is an [Error] with that code.
func HasCode(err error, code Code) bool {
	e := AsError(err)
	return e != nil && e.Code == code
}

// HasReason tells whether err is an [Error] with that reason.
func HasReason(err error, reason Reason) bool {
	e := AsError(err)
	return e != nil && e.Reason == reason
}

// Path names an input: attribute names (string) and list indexes (int).
type Path []any

// String is the path as users write it: hetzner_cloud.networks[0].ip.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, s)
		}
	}
	return b.String()
}

// Join returns a new path with more steps.
func (p Path) Join(steps ...any) Path {
	return append(append(Path{}, p...), steps...)
}
