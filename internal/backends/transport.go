// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// RequestTimeout bounds one request, its answer's body included. A server that
// never answers, or drips, costs one try.
const RequestTimeout = 60 * time.Second

// maxHeaders bounds an answer's headers in bytes.
const maxHeaders = 64 << 10

// NewTransport is the transport of every backend that needs no other: TLS 1.2 at
// least, the environment's proxy, enough connections for pages in parallel.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The standard library documents the type.
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 16
	t.MaxResponseHeaderBytes = maxHeaders
	return t
}

// Logged wraps a transport so that each request leaves a debug line: method, host,
// path, status and duration. Queries, headers and bodies may hold what is nobody's
// business and are left out. A path may hold names that the cloud gave, so it is made
// [Printable]. A nil log logs nothing.
func Logged(base http.RoundTripper, log *slog.Logger) http.RoundTripper {
	if log == nil {
		return base
	}
	return &logged{base, log}
}

type logged struct {
	base http.RoundTripper
	log  *slog.Logger
}

// RoundTrip implements [http.RoundTripper].
func (t *logged) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	answer, err := t.base.RoundTrip(r)
	fields := []any{"method", r.Method, "host", Printable(r.URL.Host), "path", Printable(r.URL.Path), "duration", time.Since(begun).String()}
	if err != nil {
		t.log.DebugContext(r.Context(), "request to the cloud got no answer", fields...)
		return answer, err
	}
	t.log.DebugContext(r.Context(), "request to the cloud", append(fields, "status", answer.StatusCode)...)
	return answer, nil
}

// Authorize wraps a transport so that each request to the endpoint's host carries
// a credential that is resolved for that request. The credential is sent to no
// other host, whatever a redirect or a next link says. A value that the cloud
// refuses with 401 is forgotten and resolved anew; if it has been rotated, the
// request is sent once more with the new one: a 401 means that nothing was done.
// header makes the header from the credential.
func Authorize(base http.RoundTripper, secrets Secrets, reference string, endpoint *url.URL,
	header func(credential string) (name, value string)) http.RoundTripper {
	return &authorizing{base, secrets, reference, endpoint, header}
}

type authorizing struct {
	base      http.RoundTripper
	secrets   Secrets
	reference string
	endpoint  *url.URL
	header    func(string) (string, string)
}

// RoundTrip implements [http.RoundTripper].
func (t *authorizing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.endpoint.Host || r.URL.Scheme != t.endpoint.Scheme {
		return nil, Errorf(ProviderError, "The cloud's answer points to another host (%s); the request was not sent.", Printable(r.URL.Host))
	}
	credential, err := t.secrets.Resolve(r.Context(), t.reference)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(credential, unicode.IsControl) {
		return nil, unsendable(t.reference)
	}
	answer, err := t.send(r, credential)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	t.secrets.Forget(t.reference)
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return answer, nil // it can't be sent again
	}
	rotated, err := t.secrets.Resolve(r.Context(), t.reference)
	if err != nil || rotated == credential || strings.ContainsFunc(rotated, unicode.IsControl) {
		return answer, nil //nolint:nilerr // The answer says more than that a second try isn't possible.
	}
	_ = answer.Body.Close()
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.send(again, rotated)
}

// unsendable is the error of a credential that no header can carry, such as a key in PEM.
func unsendable(reference string) error {
	e := Errorf(InvalidConfig, "The value of %s has line breaks or other control characters in it, which no request can carry.", reference).
		WithRemedy("Name the reference of the API's token, and store that alone, on one line.")
	e.Reason = ReasonSecret
	return e
}

func (t *authorizing) send(r *http.Request, credential string) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(t.header(credential))
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	boundAnswer(r.Context(), answer)
	withoutEcho(answer, credential)
	return answer, nil
}

// maxRefusal bounds what is read of a refusal's body in bytes: its text is all that
// counts.
const maxRefusal = 64 << 10

// shortestSecret is how short a credential can be: a shorter one, of an emulator, would
// be found in plain words.
const shortestSecret = 8

// withoutEcho takes the credential out of an answer's headers and a refusal's text, which
// are shown to the user: proxies and test servers repeat the request that they refuse,
// its headers included. One that is too short to be a secret is left. A body that breaks off is kept as
// far as it came.
func withoutEcho(answer *http.Response, credential string) {
	hide := func(s string) string {
		if len(credential) < shortestSecret {
			return s
		}
		return strings.ReplaceAll(s, credential, "…")
	}
	answer.Status = hide(answer.Status)
	for name, values := range answer.Header {
		hidden := make([]string, len(values))
		for i, v := range values {
			hidden[i] = hide(v)
		}
		answer.Header[name] = hidden
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	_ = answer.Body.Close()
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(hide(string(text)))), -1
}

// NewClient is an HTTP client for a vendor's library: no redirects are followed,
// since an API that redirects is not the API, and every request is bounded.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: transport,
		Timeout:   RequestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// NewLimitedClient is as [NewClient], for a transport with [Limited] in it: there a
// request may wait for long before its time begins.
func NewLimitedClient(transport http.RoundTripper) *http.Client {
	client := NewClient(transport)
	client.Timeout = 0
	return client
}

// bounded sends a request that gets [RequestTimeout] for its answer, body included.
func bounded(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), RequestTimeout, errNoAnswer)
	answer, err := base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if r.Context().Err() == nil && ctx.Err() != nil {
			err = errNoAnswer
		}
		cancel()
		return nil, err
	}
	answer.Body = &boundedBody{answer.Body, cancel}
	return answer, nil
}

// boundedBody ends the time of its request when it is closed.
type boundedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// TransportError turns the error of a request that got no answer into an [Error].
// An [Error] in its chain (a secret that can't be resolved) is kept. The end of
// ctx is returned as it is; everything else is PROVIDER_ERROR, unreachable and
// ambiguous. The message holds no query and no userinfo, not that of a proxy either.
func TransportError(ctx context.Context, what string, err error) error {
	if e := AsError(err); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err
	}
	return &Error{
		Code: ProviderError, Reason: ReasonUnreachable, Ambiguous: true, Err: cause,
		Message: what + " can't be reached: " + Printable(causeText(cause)) + ".",
		Remedy:  "Check the endpoint and the network, then run again.",
	}
}
