// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	client "github.com/luthermonson/go-proxmox"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/pveapitest"
)

const (
	token  = "root@pam!tofu"
	secret = "0b4e2c1a-secret"
)

// described validates what goes over a transport where the description is at hand,
// and leaves it alone where it isn't: what the test itself asserts holds anyway.
func described(t testing.TB, transport http.RoundTripper) http.RoundTripper {
	t.Helper()
	if os.Getenv(openapitest.Variable) == "" {
		t.Logf("%s is not set: answers are not validated against the API description", openapitest.Variable)
		return transport
	}
	var allowed []pveapitest.Deviation
	for _, d := range proxmox.Deviations() {
		allowed = append(allowed, pveapitest.Deviation(d))
	}
	return pveapitest.Load(t).Wrap(t, transport, allowed...)
}

func newService(t testing.TB, options proxmox.Options) *proxmox.Service {
	t.Helper()
	s, err := proxmox.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// socket serves a service over TLS and returns its address, and a transport that
// trusts the certificate by its fingerprint.
func socket(t *testing.T, s *proxmox.Service) (address string, transport *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Listener = tls.NewListener(server.Listener, s.TLSConfig())
	server.Start()
	t.Cleanup(server.Close)
	transport = &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the fingerprint is looked at instead
		VerifyConnection: func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if !strings.EqualFold(hex.EncodeToString(sum[:]), strings.ReplaceAll(s.Fingerprint(), ":", "")) {
				return errors.New("another certificate")
			}
			return nil
		},
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + server.Listener.Addr().String(), transport
}

// serve puts a service on a TLS socket and returns the client that isn't ours for
// it, with its default settings.
func serve(t *testing.T, s *proxmox.Service) *client.Client {
	t.Helper()
	address, transport := socket(t, s)
	return client.NewClient(address+"/api2/json", client.WithAPIToken(token, secret),
		client.WithHTTPClient(&http.Client{Transport: described(t, transport)}))
}

// answer is what came of a raw call.
type answer struct {
	status int
	reason string
	body   string
	data   any
	errors map[string]string
}

func (a answer) String() string { return fmt.Sprintf("%d %q %s", a.status, a.reason, a.body) }

// text is the answer's data where that is a string, such as a UPID.
func (a answer) text() string {
	text, _ := a.data.(string)
	return text
}

// object is the answer's data where that is an object.
func (a answer) object() map[string]any {
	object, _ := a.data.(map[string]any)
	return object
}

// rows are the answer's data where that is a list of objects.
func (a answer) rows() []map[string]any {
	list, _ := a.data.([]any)
	var rows []map[string]any
	for _, item := range list {
		if row, ok := item.(map[string]any); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// api sends raw calls in memory, validated.
type api struct {
	t         testing.TB
	transport http.RoundTripper
	token     string
}

func raw(t testing.TB, s *proxmox.Service) *api {
	return &api{t, described(t, emulator.Transport(s)), token + "=" + secret}
}

// try sends a call whose parameters, name=value, go where the method wants them.
func (a *api) try(ctx context.Context, method, path string, params ...string) (answer, error) {
	values := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		values.Set(name, value)
	}
	address, body := "https://pve.test/api2/json"+path, ""
	if method == "GET" || method == "DELETE" {
		if len(values) > 0 {
			address += "?" + values.Encode()
		}
	} else {
		body = values.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body == "" {
		request.Body, request.ContentLength = http.NoBody, 0
	} else {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Authorization", "PVEAPIToken="+a.token)
	return send(a.transport, request)
}

func send(transport http.RoundTripper, request *http.Request) (answer, error) {
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, err
	}
	_, reason, _ := strings.Cut(response.Status, " ")
	got := answer{status: response.StatusCode, reason: reason, body: string(text)}
	if len(text) > 0 && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		var envelope struct {
			Data   any               `json:"data"`
			Errors map[string]string `json:"errors"`
		}
		if err := json.Unmarshal(text, &envelope); err != nil {
			return got, err
		}
		got.data, got.errors = envelope.Data, envelope.Errors
	}
	return got, nil
}

func (a *api) do(method, path string, params ...string) answer {
	a.t.Helper()
	got, err := a.try(a.t.Context(), method, path, params...)
	if err != nil {
		a.t.Fatal(err)
	}
	return got
}

// ok is do for a call that must succeed.
func (a *api) ok(method, path string, params ...string) answer {
	a.t.Helper()
	got := a.do(method, path, params...)
	if got.status != 200 {
		a.t.Fatalf("%s %s: %s", method, path, got)
	}
	return got
}

// refused is do for a call that must be refused with a status and a reason.
func (a *api) refused(status int, reason, method, path string, params ...string) answer {
	a.t.Helper()
	got := a.do(method, path, params...)
	if got.status != status || got.reason != reason {
		a.t.Errorf("%s %s %v: %s, want %d %q", method, path, params, got, status, reason)
	}
	return got
}

// exit is the exit status of a task; empty while it runs.
func (a *api) exit(upid string) string {
	a.t.Helper()
	parts := strings.Split(upid, ":")
	if len(parts) != 9 {
		a.t.Fatalf("UPID %q", upid)
	}
	exit, _ := a.ok("GET", "/nodes/"+parts[1]+"/tasks/"+url.PathEscape(upid)+"/status").object()["exitstatus"].(string)
	return exit
}

// done sends a call that begins a task, which must end at once, and so.
func (a *api) done(want, method, path string, params ...string) {
	a.t.Helper()
	if got := a.exit(a.ok(method, path, params...).text()); got != want {
		a.t.Errorf("%s %s %v: the task ended with %q, want %q", method, path, params, got, want)
	}
}

func addFault(t testing.TB, s *proxmox.Service, rule emulator.Rule) {
	t.Helper()
	if err := s.AddFault(rule); err != nil {
		t.Fatal(err)
	}
}

// machine finds a machine by its VMID.
func machine(t testing.TB, s *proxmox.Service, vmid int) proxmox.VM {
	t.Helper()
	for _, vm := range s.VMs() {
		if vm.ID == vmid {
			return vm
		}
	}
	t.Fatalf("no VM %d", vmid)
	return proxmox.VM{}
}
