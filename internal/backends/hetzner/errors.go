// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The API's error codes that decide something here. hcloud-go has no constants for
// some of them, so that all are compared as text (https://docs.hetzner.cloud,
// "Errors").
const (
	codeConflict            = "conflict"
	codeDeprecatedEndpoint  = "deprecated_api_endpoint"
	codeBySelector          = "firewall_managed_by_label_selector"
	codeForbidden           = "forbidden"
	codeInvalidInput        = "invalid_input"
	codeInvalidServerType   = "invalid_server_type"
	codeIPNotAvailable      = "ip_not_available"
	codeJSONError           = "json_error"
	codeLimitReached        = "limit_reached"
	codeLocked              = "locked"
	codeMaintenance         = "maintenance"
	codeNetworksOverlap     = "networks_overlap"
	codeNoSpace             = "no_space_left_in_location"
	codeNoSubnet            = "no_subnet_available"
	codeNotFound            = "not_found"
	codePlacement           = "placement_error"
	codePrimaryIPAssigned   = "primary_ip_assigned"
	codePrimaryIPElsewhere  = "primary_ip_datacenter_mismatch"
	codePrimaryIPVersion    = "primary_ip_version_mismatch"
	codePrivateOnly         = "private_net_only_server"
	codeProtected           = "protected"
	codeRateLimit           = "rate_limit_exceeded"
	codeResourceLimit       = "resource_limit_exceeded"
	codeResourceLocked      = "resource_locked"
	codeResourceUnavailable = "resource_unavailable"
	codeRobotUnavailable    = "robot_unavailable"
	codeServerAttached      = "server_already_attached"
	codeServiceError        = "service_error"
	codeTokenReadonly       = "token_readonly"
	codeUnauthorized        = "unauthorized"
	codeUniqueness          = "uniqueness_error"
	codeUnsupported         = "unsupported_error"
	codeVolumeAttached      = "volume_already_attached"
)

// defaultRateLimit is the requests per hour of a project when the answer doesn't say.
const defaultRateLimit = 3600

var (
	errNoPagination = errors.New("the list has no pagination")
	errNoObject     = errors.New("the object has no id")
	errNotDeleted   = errors.New("the answer to a deletion is not 204")
)

func succeeded(answer *hcloud.Response) bool {
	return answer != nil && answer.Response != nil && answer.StatusCode >= 200 && answer.StatusCode <= 299
}

// failure is the [backends.Error] of a call of hcloud-go, nil when it succeeded.
// The library takes a redirect for a success, drops the response on a failure of
// the network, and drops an error's code when its details have another shape than
// it knows; so the answer itself is looked at.
func failure(ctx context.Context, what string, answer *hcloud.Response, err error) error {
	if err == nil && succeeded(answer) {
		return nil
	}
	if e := backends.AsError(err); e != nil {
		return e // a secret that can't be resolved
	}
	status := 0
	if answer != nil && answer.Response != nil {
		status = answer.StatusCode
	}
	switch {
	case status >= http.StatusBadRequest:
		return refused(what, answer)
	case status >= http.StatusMultipleChoices:
		return notTheAPI(what, answer, "the answer is a redirect, which is not followed")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case status != 0:
		e := facts(what, answer, "", "the answer can't be understood"+backends.AnswerProblem(err))
		// The status says that the call was carried out; only its result is lost.
		e.Ambiguous, e.Err = true, err
		return e
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	return backends.TransportError(ctx, what+": Hetzner Cloud", err)
}

// facts is an error with what every refusal has: {status, code} and, where the
// answer names one, the id that the vendor's support asks for. It stays out of
// the message, so that equal failures read the same.
func facts(what string, answer *hcloud.Response, code, message string) *backends.Error {
	e := backends.Errorf(backends.ProviderError, "%s: %s.", what, strings.TrimRight(message, "."))
	e.Details = map[string]any{"code": code}
	if answer != nil && answer.Response != nil {
		e.Details["status"] = answer.StatusCode
		if id := answer.Header.Get("X-Correlation-Id"); id != "" {
			e.Details["correlation_id"] = backends.Printable(id)
		}
	}
	return e
}

// notTheAPI is for answers that only something else than the API gives. It is
// never NOT_FOUND: a wrong endpoint must not look like a machine that is gone.
func notTheAPI(what string, answer *hcloud.Response, message string) *backends.Error {
	return facts(what, answer, "", message).
		WithRemedy("Check that the account's endpoint is the base url of the Hetzner Cloud API, version included, such as %s.", DefaultEndpoint)
}

// refused classifies an answer of 400 and above. The code is empty when the
// answer is not the API's JSON.
func refused(what string, answer *hcloud.Response) error {
	status := 0
	if answer != nil && answer.Response != nil {
		status = answer.StatusCode
	}
	code, message, details := readError(answer)
	said := backends.Printable(message)
	switch {
	case code == "":
		said = fmt.Sprintf("the answer is status %d (%s) without an explanation", status, http.StatusText(status))
	case said == "":
		said = code
	default:
		said += " (" + code + ")"
	}
	if fields := details.text(); fields != "" {
		said += ": " + fields
	}
	e := facts(what, answer, code, said)

	switch {
	case code == codeRateLimit || code == codeLimitReached || status == http.StatusTooManyRequests:
		return rateLimited(e, answer)
	case status == http.StatusNotFound && code == codeNotFound && !strings.Contains(message, "api route"):
		e.Code = backends.NotFound
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return notTheAPI(what, answer, said)
	case code == codeTokenReadonly || code == codeForbidden:
		return permission(e)
	case code == codeUnauthorized || status == http.StatusUnauthorized:
		e.Reason = backends.ReasonCredentials
		e.Remedy = "Check that the account's token reference names a token of the right project, and that the token was not deleted."
	case code == codeResourceLimit:
		e.Reason = backends.ReasonQuota
		if len(details.Limits) > 0 {
			e.Details["limits"] = details.limitNames()
		}
		e.Remedy = "Delete what isn't needed, or ask for a higher limit in the Hetzner Console."
	case code == codeResourceUnavailable || code == codePlacement || code == codeNoSpace:
		e.Reason = backends.ReasonCapacity
	case code == codeLocked:
		e.Reason, e.Retryable = backends.ReasonLocked, true
	case code == codeResourceLocked:
		// Unlike locked, this one doesn't pass: "the caller should contact support".
		e.Reason = backends.ReasonLocked
		e.Remedy = "Hetzner has locked the object: ask its support."
	case code == codeConflict || code == codeMaintenance || code == codeRobotUnavailable:
		e.Retryable = true
	case code == codeProtected:
		e.Reason = backends.ReasonProtected
		e.Remedy = "Switch the protection off first (deletion_protection = false)."
	case code == codeDeprecatedEndpoint:
		e.Remedy = "Hetzner has removed this part of its API: update the provider."
	case status >= http.StatusInternalServerError || status == http.StatusRequestTimeout:
		e.Ambiguous = true
	case status == http.StatusForbidden:
		return permission(e)
	case isInvalid(code):
		e.Reason = backends.ReasonInvalid
		if len(details.Fields) > 0 {
			e.Details["fields"] = details.fieldMessages()
		}
	case code == codeUniqueness && len(details.Fields) > 0:
		e.Details["fields"] = details.fieldMessages()
	}
	return e
}

func permission(e *backends.Error) *backends.Error {
	e.Reason = backends.ReasonPermission
	e.Remedy = "Use a token with read and write access to the project."
	return e
}

func isInvalid(code string) bool {
	return slices.Contains([]string{
		codeInvalidInput, codeJSONError, codeUnsupported, codeInvalidServerType, codeIPNotAvailable,
		codeNoSubnet, codeNetworksOverlap, codePrivateOnly, codePrimaryIPElsewhere, codePrimaryIPVersion,
	}, code)
}

// rateLimited says when one more request is possible: the bucket refills evenly
// over the hour. RateLimit-Reset is when it is full again, up to an hour away; it
// is reported and not waited for.
func rateLimited(e *backends.Error, answer *hcloud.Response) *backends.Error {
	e.Code, e.Retryable = backends.RateLimited, true
	limit := defaultRateLimit
	if answer != nil {
		if answer.Meta.Ratelimit.Limit > 0 {
			limit = answer.Meta.Ratelimit.Limit
		}
		if reset := answer.Meta.Ratelimit.Reset; !reset.IsZero() {
			e.Details["reset"] = reset.UTC().Format(time.RFC3339)
		}
	}
	e.RetryAfter = max(time.Second, time.Hour/time.Duration(limit))
	e.Remedy = "Hetzner counts the requests of all tokens of a project together: wait, or see what else uses it."
	return e
}

// actionFailed is the error of an asynchronous action.
func actionFailed(what string, a *hcloud.Action) *backends.Error {
	message, code := backends.Printable(a.ErrorMessage), backends.Printable(a.ErrorCode)
	if message == "" {
		message = "the action failed"
	}
	e := backends.Errorf(backends.ProviderError, "%s: Hetzner's action %s failed: %s (%s).",
		what, backends.Printable(a.Command), strings.TrimRight(message, "."), code)
	e.Reason = backends.ReasonAction
	e.Details = map[string]any{"code": code, "action_id": a.ID, "command": backends.Printable(a.Command)}
	if code == codeResourceUnavailable || code == codePlacement {
		e.Reason = backends.ReasonCapacity
	}
	return e
}

// hasAPICode tells whether err is a refusal with one of the API's codes.
func hasAPICode(err error, codes ...string) bool {
	e := backends.AsError(err)
	if e == nil {
		return false
	}
	code, ok := e.Details["code"].(string)
	return ok && slices.Contains(codes, code)
}

// answerDetails are the details of the API's errors that name something. All
// parts are optional, and null or another shape reads as none.
type answerDetails struct {
	Fields []struct {
		Name     string   `json:"name"`
		Messages []string `json:"messages"`
	} `json:"fields"`
	Limits []struct {
		Name string `json:"name"`
	} `json:"limits"`
}

// readError reads the API's form of an error; the code is "" when it is another.
func readError(answer *hcloud.Response) (code, message string, details answerDetails) {
	if answer == nil || answer.Response == nil || answer.Body == nil ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return "", "", details
	}
	var body struct {
		Error struct {
			Code    string          `json:"code"`
			Message string          `json:"message"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || json.Unmarshal(text, &body) != nil {
		return "", "", details
	}
	if json.Unmarshal(body.Error.Details, &details) != nil {
		details = answerDetails{}
	}
	return backends.Printable(body.Error.Code), body.Error.Message, details
}

func (d answerDetails) fieldMessages() map[string]string {
	out := make(map[string]string, len(d.Fields))
	for _, f := range d.Fields {
		out[backends.Printable(f.Name)] = backends.Printable(strings.Join(f.Messages, ", "))
	}
	return out
}

func (d answerDetails) limitNames() []string {
	out := make([]string, 0, len(d.Limits))
	for _, l := range d.Limits {
		out = append(out, backends.Printable(l.Name))
	}
	return out
}

// text is the details as part of a sentence: "server_limit" or "name: too long".
func (d answerDetails) text() string {
	parts := d.limitNames()
	messages := d.fieldMessages()
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		if messages[name] != "" {
			parts = append(parts, name+": "+messages[name])
		}
	}
	return strings.Join(parts, "; ")
}
