// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// fixedSecrets resolves every reference to one token and counts what is forgotten.
type fixedSecrets struct {
	mu        sync.Mutex
	token     string
	err       error
	forgotten int
}

func (s *fixedSecrets) Resolve(context.Context, string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.err
}

func (s *fixedSecrets) Forget(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten++
}

const testToken = "dop_v1_hunter2hunter2"

// clientOf is a client on a transport; account is what its account says besides the
// token.
func clientOf(t *testing.T, transport http.RoundTripper, secrets backends.Secrets, account ...backends.Values) *Client {
	t.Helper()
	d := New(Options{Transport: transport})
	config := backends.Values{"token": "env://DIGITALOCEAN_TOKEN", "region": "fra1"}
	for _, a := range account {
		maps.Copy(config, a)
	}
	b, err := d.Create(backends.WithDefaults(d.Manifest.Account, config), backends.Environment{
		Secrets: secrets, UserAgent: "bettercompute-test/1.0.0", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.(*Client)
}

// scripted is a client of a scripted API.
func scripted(t *testing.T, s http.RoundTripper) *Client {
	t.Helper()
	return clientOf(t, s, &fixedSecrets{token: testToken})
}

// emulatedClient is a client of an emulated cloud, in memory.
func emulatedClient(t *testing.T, options emulated.Options, account ...backends.Values) (*Client, *emulated.Service) {
	t.Helper()
	cloud := emulated.New(options)
	return clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken}, account...), cloud
}

// answer is what a scripted API says to one request.
type answer struct {
	status      int
	contentType string
	body        string
	header      map[string]string
	err         error
}

func jsonAnswer(status int, body string) answer {
	return answer{status: status, contentType: "application/json", body: body}
}

// refusal is an answer in the API's form for errors.
func refusal(status int, id, message string) answer {
	return jsonAnswer(status, `{"id":"`+id+`","message":"`+message+`","request_id":"req-1"}`)
}

// script is a transport that answers by a function of the request and its number
// among those to the same method and path.
type script struct {
	mu       sync.Mutex
	requests []string // method and path
	bodies   []string
	answer   func(r *http.Request, nth int) answer
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	s.mu.Lock()
	line := r.Method + " " + r.URL.Path
	nth := 1
	for _, seen := range s.requests {
		if seen == line {
			nth++
		}
	}
	s.requests = append(s.requests, line)
	s.bodies = append(s.bodies, string(body))
	s.mu.Unlock()
	a := s.answer(r, nth)
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{}
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	for k, v := range a.header {
		h.Set(k, v)
	}
	return &http.Response{
		StatusCode: a.status, Header: h, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)),
	}, nil
}

func always(a answer) *script {
	return &script{answer: func(*http.Request, int) answer { return a }}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// counts are a cloud's calls by method and path, ids and tags' values replaced.
func counts(cloud *emulated.Service) map[string]int {
	out := map[string]int{}
	for _, c := range cloud.Calls() {
		parts := strings.Split(c.Path, "/")
		for i, p := range parts {
			if _, ok := parseID(p); ok || uuidForm.MatchString(p) {
				parts[i] = "ID"
			}
			if mark, _, ok := strings.Cut(strings.TrimPrefix(p, DefaultTagPrefix+":"), ":"); ok && strings.HasPrefix(p, DefaultTagPrefix+":") {
				parts[i] = mark
			}
		}
		out[c.Method+" "+strings.Join(parts, "/")]++
	}
	return out
}

// send sends a request of the vendor's API that this backend doesn't make, such as
// the making of a VPC.
func send(t *testing.T, cloud http.Handler, method, path string, in any) map[string]any {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api.test"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Content-Type", "application/json")
	got, err := emulator.Transport(cloud).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	var out map[string]any
	if got.StatusCode > 299 {
		text, _ := io.ReadAll(got.Body)
		t.Fatalf("%s %s: status %d, %s", method, path, got.StatusCode, text)
	}
	if got.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(got.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// field is a part of an answer, by its path.
func field[T any](t *testing.T, answer map[string]any, path ...string) T {
	t.Helper()
	var at any = answer
	for _, name := range path {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	v, ok := at.(T)
	if !ok {
		t.Fatalf("no %v in %v", path, answer)
	}
	return v
}

func wantError(t *testing.T, err error) *backends.Error {
	t.Helper()
	e := backends.AsError(err)
	if e == nil {
		t.Fatalf("want an Error, got %T %v", err, err)
	}
	if strings.Contains(e.Error(), testToken) || strings.Contains(e.Remedy, testToken) {
		t.Errorf("the message holds the token: %v", e)
	}
	return e
}

func testSpec() backends.MachineSpec {
	return backends.MachineSpec{
		Name: "web-0", Offer: "s-1vcpu-1gb", Image: "ubuntu-24-04-x64", Region: "fra1", Start: true,
		Marks: backends.Marks{
			Managed: true, Key: "inst_0123456789abcdefghjkmnpqrs", Account: "pacct_0123456789abcdefghjkmnpqrs",
			Pool: "pool_0123456789abcdefghjkmnpqrs", Digest: "iabcdef-o123456-r99zzzz", Claim: "c0ffee",
		},
	}
}
