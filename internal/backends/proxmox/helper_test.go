// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// fixedSecrets resolves references to what is said for each, and all others to one
// token.
type fixedSecrets struct {
	token string
	known map[string]string
	err   error
}

func (s *fixedSecrets) Resolve(_ context.Context, reference string) (string, error) {
	if v, ok := s.known[reference]; ok {
		return v, s.err
	}
	return s.token, s.err
}

func (s *fixedSecrets) Forget(string) {}

const testToken = "bc@pve!tofu=hunter2-hunter2"

// backendOf is a backend on a transport; account is what its account says besides
// url and token.
func backendOf(t *testing.T, transport http.RoundTripper, secrets backends.Secrets, account ...backends.Values) backends.Backend {
	t.Helper()
	d := New(Options{Transport: transport})
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	config := backends.Values{"url": "https://pve.test:8006", "token": "env://PROXMOX_TOKEN"}
	for _, a := range account {
		maps.Copy(config, a)
	}
	b, err := d.Create(backends.WithDefaults(d.Manifest.Account, config), backends.Environment{
		Secrets: secrets, UserAgent: "bettercompute-test/1.0.0", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func clientOf(t *testing.T, transport http.RoundTripper, account ...backends.Values) *Client {
	t.Helper()
	switch b := backendOf(t, transport, &fixedSecrets{token: testToken}, account...).(type) {
	case *Client:
		return b
	case *withSnippets:
		return b.Client
	default:
		t.Fatalf("a backend of type %T", b)
		return nil
	}
}

// emulate is an emulated cluster and a client of it, in memory.
func emulate(t *testing.T, options emulated.Options, account ...backends.Values) (*Client, *emulated.Service) {
	t.Helper()
	options.PlainHTTP = true // no certificate is needed in memory
	cluster, err := emulated.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, emulator.Transport(cluster), account...), cluster
}

// slow is a cluster whose tasks take their time.
func slow() emulated.Options { return emulated.Options{Boot: 40 * time.Second} }

const (
	testKey   = "inst_0123456789abcdefghjkmnpqrs"
	testClaim = "c0ffee"
)

func testSpec() backends.MachineSpec {
	return backends.MachineSpec{
		Name: "web-0", Offer: "2c-4g", Image: "debian-13", Region: "pve", Start: true,
		Marks: backends.Marks{
			Managed: true, Key: testKey, Account: "pacct_0123456789abcdefghjkmnpqrs",
			Pool: "pool_0123456789abcdefghjkmnpqrs", Digest: "iabcdef-o123456-r99zzzz", Claim: testClaim,
		},
	}
}

// specOf is a wish of its own name and key.
func specOf(n int) backends.MachineSpec {
	s := testSpec()
	s.Name = fmt.Sprintf("web-%d", n)
	s.Marks.Key = fmt.Sprintf("inst_%026d", n)
	s.Marks.Claim = fmt.Sprintf("claim%d", n)
	return s
}

// create makes a VM and completes it, as the rules above a backend do.
func create(ctx context.Context, c *Client, spec backends.MachineSpec) (backends.Machine, error) {
	m, err := c.MakeMachine(ctx, spec)
	if err != nil {
		return m, err
	}
	return complete(ctx, c, m, spec)
}

func complete(ctx context.Context, c *Client, m backends.Machine, spec backends.MachineSpec) (backends.Machine, error) {
	m, err := c.FinishMachine(ctx, m, spec)
	if err != nil {
		return m, err
	}
	marks := m.Marks
	marks.Complete = true
	return c.MarkMachine(ctx, m, marks)
}

func mustCreate(t *testing.T, c *Client, spec backends.MachineSpec) backends.Machine {
	t.Helper()
	m, err := create(t.Context(), c, spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// vmOf is the emulated VM with a machine's id.
func emulatedVM(t *testing.T, cluster *emulated.Service, id string) emulated.VM {
	t.Helper()
	all := cluster.VMs()
	i := slices.IndexFunc(all, func(v emulated.VM) bool { return fmt.Sprint(v.ID) == id })
	if i < 0 {
		t.Fatalf("there is no VM %s", id)
	}
	return all[i]
}

func atoi(t *testing.T, id string) int {
	t.Helper()
	n, err := vmidOf("test", id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantError(t *testing.T, err error) *backends.Error {
	t.Helper()
	e := backends.AsError(err)
	if e == nil {
		t.Fatalf("want an Error, got %T %v", err, err)
	}
	if strings.Contains(e.Error()+e.Remedy, "hunter2") {
		t.Errorf("the message holds the token: %v", e)
	}
	return e
}

func wantCode(t *testing.T, err error, code backends.Code) *backends.Error {
	t.Helper()
	e := wantError(t, err)
	if e.Code != code {
		t.Fatalf("want %s, got %v", code, err)
	}
	return e
}

// isPoll tells whether a call only looks whether something is done.
func isPoll(method, path string) bool {
	return method == http.MethodGet && strings.Contains(path, "/tasks")
}

// calls are a cluster's calls, without polls of tasks.
func calls(cluster *emulated.Service) []string {
	var out []string
	for _, c := range cluster.Calls() {
		if !isPoll(c.Method, c.Path) {
			out = append(out, c.Method+" "+strings.TrimPrefix(c.Path, "/api2/json"))
		}
	}
	return out
}

// script is a transport that answers by a function.
type script struct {
	mu       sync.Mutex
	requests []string
	answer   func(r *http.Request, body string, nth int) scripted
}

type scripted struct {
	status int
	reason string
	body   string
	err    error
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	nth := len(s.requests)
	s.mu.Unlock()
	a := s.answer(r, string(body), nth)
	if a.err != nil {
		return nil, a.err
	}
	reason := a.reason
	if reason == "" {
		reason = http.StatusText(a.status)
	}
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprintf("%d %s", a.status, reason), Header: http.Header{}, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)),
	}, nil
}
