// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
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
	for _, d := range hetzner.Deviations() {
		options = append(options, openapitest.Allow(openapitest.Deviation(d)))
	}
	return openapitest.Wrap(t, openapitest.Load(t, "hetzner.json"), handler, options...)
}

// serve puts a service on a socket and returns the vendor's client for it, as
// it comes.
func serve(t *testing.T, s *hetzner.Service, options ...hcloud.ClientOption) *hcloud.Client {
	t.Helper()
	server := httptest.NewServer(described(t, s))
	t.Cleanup(server.Close)
	options = append([]hcloud.ClientOption{hcloud.WithToken("token"), hcloud.WithEndpoint(server.URL + "/v1")}, options...)
	return hcloud.NewClient(options...)
}

// quick polls fast; all else of the client is as it comes.
func quick() hcloud.ClientOption {
	return hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: hcloud.ConstantBackoff(time.Millisecond)})
}

func must[T any](t *testing.T) func(T, *hcloud.Response, error) T {
	return func(value T, _ *hcloud.Response, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wait(t *testing.T, client *hcloud.Client, actions ...*hcloud.Action) {
	t.Helper()
	if err := client.Action.WaitFor(t.Context(), actions...); err != nil {
		t.Fatal(err)
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
	request, err := http.NewRequestWithContext(ctx, method, "http://hetzner.test"+path, strings.NewReader(body))
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

func addFault(t *testing.T, s *hetzner.Service, rule emulator.Rule) {
	t.Helper()
	if err := s.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}
