// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// described validates a handler's calls where the description is at hand, and
// leaves it alone where it isn't: what the test itself asserts holds anyway.
func described(t testing.TB, handler http.Handler, options ...openapitest.Option) http.Handler {
	t.Helper()
	if os.Getenv(openapitest.Variable) == "" {
		t.Logf("%s is not set: answers are not validated against the API description", openapitest.Variable)
		return handler
	}
	for _, d := range digitalocean.Deviations() {
		options = append(options, openapitest.Allow(openapitest.Deviation(d)))
	}
	return openapitest.Wrap(t, openapitest.Load(t, "digitalocean.json"), handler, options...)
}

// serve puts a service on a socket and returns the vendor's client for it, as
// it comes: with its own retries.
func serve(t *testing.T, s *digitalocean.Service, options ...openapitest.Option) *godo.Client {
	t.Helper()
	server := httptest.NewServer(described(t, s, options...))
	t.Cleanup(server.Close)
	client := godo.NewFromToken("token")
	if err := godo.SetBaseURL(server.URL + "/")(client); err != nil {
		t.Fatal(err)
	}
	return client
}

// must takes what the client's calls return.
func must[T any](t *testing.T) func(T, *godo.Response, error) T {
	return func(value T, _ *godo.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// done takes what the client's calls without a result return.
func done(t *testing.T) func(*godo.Response, error) {
	return func(_ *godo.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// refusal reports an error that isn't the API's with that status and text.
func refusal(t *testing.T, err error, status int, message string) {
	t.Helper()
	var answer *godo.ErrorResponse
	if !errors.As(err, &answer) || answer.Response.StatusCode != status || !strings.Contains(answer.Message, message) {
		t.Errorf("got %v, want %d %q", err, status, message)
	}
}

// do sends a raw request in memory and returns status and body.
func do(t *testing.T, handler http.Handler, method, path, body string) (int, string, http.Header) {
	t.Helper()
	status, text, header, err := try(t.Context(), handler, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text, header
}

func try(ctx context.Context, handler http.Handler, method, path, body string) (int, string, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://digitalocean.test"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	request.Header.Set("Authorization", "Bearer token")
	response, err := emulator.Transport(handler).RoundTrip(request)
	if err != nil {
		return 0, "", nil, err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), response.Header, errors.Join(err, response.Body.Close())
}

func addFault(t *testing.T, s *digitalocean.Service, rule emulator.Rule) {
	t.Helper()
	if err := s.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}

// small is a Droplet to be made.
func small(name string) *godo.DropletCreateRequest {
	return &godo.DropletCreateRequest{
		Name: name, Region: "fra1", Size: "s-1vcpu-1gb", Image: godo.DropletCreateImage{Slug: "debian-12-x64"},
	}
}
