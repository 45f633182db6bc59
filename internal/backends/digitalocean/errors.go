// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// What refusals say. The API has one id per status, so that only the text tells
// them apart; godo and the vendor's CSI driver match these texts too. They are
// compared without regard to case.
const (
	textPendingEvent = "pending event"                  // 422: one event at a time per Droplet
	textAlready      = "already powered"                // 422: "Droplet is already powered off."
	textMustBeOff    = "must be powered off"            // 422: a resize of a Droplet that runs
	textRateLimited  = "this operation is rate-limited" // 429: snapshots of one volume
)

// textsLimit are of limits of the account, 403 and 422: "creating this/these
// droplet(s) will exceed your droplet limit", "volume/snapshot capacity limit
// exceeded".
var textsLimit = []string{"exceed your", "limit exceeded", "limit reached", "droplet limit", "volume limit"}

// textsCapacity are of offers that can't be had now or there, all 422.
var textsCapacity = []string{
	"not available", "unavailable", "out of capacity", "insufficient capacity", "no capacity",
	"too large to fit", // a resize: "Size is too large to fit on your droplet's server" (api-v2#117)
}

// longestWait bounds what an answer's retry-after can make us wait.
const longestWait = time.Hour

// failure is the [backends.Error] of a try, nil when it succeeded.
func failure(ctx context.Context, what string, n *note, err error) error {
	if err == nil && n.succeeded() {
		return nil
	}
	if e := backends.AsError(err); e != nil {
		return e // a secret that can't be resolved
	}
	switch {
	case n.status >= http.StatusBadRequest:
		return refused(what, n)
	case n.status >= http.StatusMultipleChoices:
		return notTheAPI(what, n, "", "the answer is a redirect, which is not followed")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case n.status != 0:
		e := facts(what, n, "", "the answer can't be understood"+backends.AnswerProblem(err))
		// The status says that the call was carried out; only its result is lost.
		e.Ambiguous, e.Err = true, err
		return e
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	return backends.TransportError(ctx, what+": DigitalOcean", err)
}

// facts is an error with what every refusal has: {status, code} and, where the
// answer names one, the id that the vendor's support asks for. It stays out of the
// message, so that equal failures read the same.
func facts(what string, n *note, code, message string) *backends.Error {
	e := backends.Errorf(backends.ProviderError, "%s: %s.", what, strings.TrimRight(message, "."))
	e.Details = map[string]any{"code": code, "status": n.status}
	if id := n.header.Get("X-Request-Id"); id != "" {
		e.Details["request_id"] = backends.Printable(id)
	}
	return e
}

// notTheAPI is for answers that only something else than the API gives. It is
// never NOT_FOUND: a wrong endpoint must not look like a machine that is gone.
func notTheAPI(what string, n *note, code, message string) *backends.Error {
	return facts(what, n, code, message).
		WithRemedy("Check that the account's endpoint is the base url of the DigitalOcean API, such as %s.", DefaultEndpoint)
}

// refused classifies an answer of 400 and above. The code is the API's id, empty
// when the answer is not the API's JSON, as in outages.
func refused(what string, n *note) error {
	code, message := readError(n)
	said := backends.Printable(message)
	switch {
	case code == "":
		said = fmt.Sprintf("the answer is status %d (%s) without an explanation", n.status, http.StatusText(n.status))
	case said == "":
		said = code
	default:
		said = strings.TrimRight(said, ".") + " (" + code + ")"
	}
	e := facts(what, n, code, said)
	if code != "" {
		e.Details["message"] = backends.Printable(message)
	}

	switch {
	case n.status == http.StatusTooManyRequests:
		return rateLimited(e, n, message)
	case n.status == http.StatusNotFound && code == "not_found":
		e.Code = backends.NotFound
	case n.status == http.StatusNotFound || n.status == http.StatusMethodNotAllowed:
		return notTheAPI(what, n, code, said)
	case n.status == http.StatusUnauthorized:
		e.Reason = backends.ReasonCredentials
		e.Remedy = "Check that the account's token reference names a token of the right team, and that the token was not deleted and has not expired."
	case n.status >= http.StatusInternalServerError || n.status == http.StatusRequestTimeout:
		e.Ambiguous = true
	case n.status == http.StatusUnprocessableEntity && contains(message, textPendingEvent):
		e.Reason, e.Retryable = backends.ReasonLocked, true
	case (n.status == http.StatusForbidden || n.status == http.StatusUnprocessableEntity) && contains(message, textsLimit...):
		e.Reason = backends.ReasonQuota
		e.Remedy = "Delete what isn't needed, or ask for a higher limit in the DigitalOcean control panel."
	case n.status == http.StatusForbidden:
		e.Reason = backends.ReasonPermission
		e.Remedy = "Use a token with read and write access, or one whose scopes allow this."
	case n.status == http.StatusUnprocessableEntity && contains(message, textsCapacity...):
		e.Reason = backends.ReasonCapacity
	case n.status == http.StatusUnprocessableEntity || n.status == http.StatusBadRequest:
		e.Reason = backends.ReasonInvalid
	}
	return e
}

// contains tells whether a refusal's text holds one of the texts.
func contains(message string, texts ...string) bool {
	message = strings.ToLower(message)
	for _, t := range texts {
		if strings.Contains(message, t) {
			return true
		}
	}
	return false
}

var everyForm = regexp.MustCompile(`one request per ([0-9hms]+)`)

// rateLimited says when one more request is possible. Only the burst limit (250 a
// minute) comes with retry-after; of the hourly one (5,000) the policy's backoff is
// waited. The reset time is when the oldest request no longer counts: it is reported
// and not waited for. The limit on snapshots of one volume isn't the API's and isn't
// Retryable: it lasts ten minutes, and the caller decides.
func rateLimited(e *backends.Error, n *note, message string) *backends.Error {
	e.Code = backends.RateLimited
	if contains(message, textRateLimited) {
		if found := everyForm.FindStringSubmatch(message); found != nil {
			if every, err := time.ParseDuration(found[1]); err == nil && every > 0 {
				e.RetryAfter = min(every, longestWait)
			}
		}
		return e
	}
	e.Retryable = true
	if seconds, err := strconv.Atoi(n.header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = min(time.Duration(min(seconds, 1<<20))*time.Second, longestWait)
	}
	if reset, err := strconv.ParseInt(n.header.Get("Ratelimit-Reset"), 10, 64); err == nil && reset > 0 {
		e.Details["reset"] = time.Unix(reset, 0).UTC().Format(time.RFC3339)
	}
	e.Remedy = "DigitalOcean takes 5,000 requests an hour and 250 a minute from one token: wait, or see what else uses it."
	return e
}

// actionError is the error of an asynchronous action. The API says nothing about
// why.
func actionError(what string, a *godo.Action) *backends.Error {
	kind := backends.Printable(a.Type)
	e := backends.Errorf(backends.ProviderError, "%s: DigitalOcean's action %s (%d) failed, and the API doesn't say why.", what, kind, a.ID).
		WithRemedy("The Droplet's history in the control panel may say more.")
	e.Reason = backends.ReasonAction
	e.Details = map[string]any{"action_id": a.ID, "type": kind}
	return e
}

// says tells whether err is a refusal with that status in which the API's own words
// hold one of the texts.
func says(err error, status int, texts ...string) bool {
	e := backends.AsError(err)
	if e == nil || e.Details["status"] != status {
		return false
	}
	message, ok := e.Details["message"].(string)
	return ok && contains(message, texts...)
}

// plain is a copy of the error that can be changed.
func plain(err error) *backends.Error {
	e := *backends.AsError(err)
	return &e
}

// readError reads the API's form of an error; the id is "" when it is another.
// Some services say code instead of id.
func readError(n *note) (id, message string) {
	var body struct {
		ID      string `json:"id"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(n.text, &body) != nil {
		return "", ""
	}
	if body.ID == "" {
		body.ID = body.Code
	}
	return backends.Printable(body.ID), body.Message
}
