// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// TestRun starts the command on free ports, uses what it prints, holds a call,
// and ends it.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, []string{"-hetzner", "127.0.0.1:0", "-digitalocean", "127.0.0.1:0", "-proxmox", "127.0.0.1:0", "-control", "localhost:0", "-boot", "1ms", "-state", t.TempDir() + "/state.json", "-project", "secret-token=one", "-project", "root@pam!tofu=secret-token=one"}, writer, io.Discard)
		_ = writer.Close()
		ended <- err
	}()
	var printed strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(printed.String(), "Ctrl-C") {
		n, err := reader.Read(buffer)
		printed.Write(buffer[:n])
		if err != nil {
			t.Fatalf("ended early: %v, after %s", <-ended, &printed)
		}
	}
	text := printed.String()
	control := regexp.MustCompile(`Control API at (http://\S+)`).FindStringSubmatch(text)
	account := regexp.MustCompile(`(?m)^  hetzner_cloud = \{
    token    = "env://HCLOUD_TOKEN"
    endpoint = "(http://127\.0\.0\.1:[1-9]\d*/v1)"
  \}$`).FindStringSubmatch(text)
	droplets := regexp.MustCompile(`(?m)^  digitalocean = \{
    token    = "env://DIGITALOCEAN_TOKEN"
    region   = "fra1"
    endpoint = "(http://127\.0\.0\.1:[1-9]\d*)"
  \}$`).FindStringSubmatch(text)
	cluster := regexp.MustCompile(`(?m)^  proxmox = \{
    url             = "(https://127\.0\.0\.1:[1-9]\d*)"
    token           = "env://PROXMOX_TOKEN"
    tls_fingerprint = "((?:[0-9A-F]{2}:){31}[0-9A-F]{2})"
  \}$`).FindStringSubmatch(text)
	if control == nil || account == nil || droplets == nil || cluster == nil || !strings.Contains(text, "HCLOUD_TOKEN must hold a token that was given with -project (projects: one)") ||
		strings.Contains(text, "secret-token") || strings.Contains(text, "Any token") {
		t.Fatalf("printed %s", text)
	}
	get := func(method, address, body string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer secret-token")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := get("GET", account[1]+"/servers", ""); status != 200 || err != nil {
		t.Errorf("servers: %d %v", status, err)
	}
	if status, err := get("GET", droplets[1]+"/v2/droplets", ""); status != 200 || err != nil {
		t.Errorf("droplets: %d %v", status, err)
	}
	if status, err := getPinned(t, cluster[1]+"/api2/json/nodes", cluster[2]); status != 200 || err != nil {
		t.Errorf("nodes: %d %v", status, err)
	}
	if status, err := getPinned(t, cluster[1]+"/api2/json/nodes", strings.Repeat("00:", 31)+"00"); err == nil {
		t.Errorf("nodes, with another fingerprint: %d", status)
	}
	if status, err := get("POST", control[1]+"/faults", `{"service":"hetzner","kind":"hold"}`); status != 201 || err != nil {
		t.Errorf("fault: %d %v", status, err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := get("POST", account[1]+"/servers", "{}")
		held <- err
	}()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := <-held; err == nil {
		t.Error("the held call was answered")
	}
}

// getPinned gets something from a server that is known by its certificate's
// fingerprint only.
func getPinned(t *testing.T, address, fingerprint string) (int, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the fingerprint is looked at instead
		VerifyConnection: func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if !strings.EqualFold(hex.EncodeToString(sum[:]), strings.ReplaceAll(fingerprint, ":", "")) {
				return errors.New("another certificate")
			}
			return nil
		},
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "PVEAPIToken=root@pam!tofu=secret-token")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestPlainHTTP: the account then has no fingerprint, and with a folder for them it has
// snippets.
func TestPlainHTTP(t *testing.T) {
	snippets := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, []string{"-hetzner", "127.0.0.1:0", "-digitalocean", "127.0.0.1:0", "-proxmox", "127.0.0.1:0", "-control", "127.0.0.1:0", "-proxmox-http", "-proxmox-snippets", snippets, "-proxmox-deny", "/=Sys.Audit", "-proxmox-nodes", "alpha"}, writer, io.Discard)
		_ = writer.Close()
		ended <- err
	}()
	var printed strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(printed.String(), "Ctrl-C") {
		n, err := reader.Read(buffer)
		printed.Write(buffer[:n])
		if err != nil {
			t.Fatalf("ended early: %v, after %s", <-ended, &printed)
		}
	}
	cluster := regexp.MustCompile(`(?m)^  proxmox = \{
    url   = "(http://127\.0\.0\.1:[1-9]\d*)"
    token = "env://PROXMOX_TOKEN"
    snippets = \{
      storage   = "snippets"
      directory = "` + regexp.QuoteMeta(snippets) + `"
    \}
  \}$`).FindStringSubmatch(printed.String())
	if cluster == nil || !strings.Contains(printed.String(), "export PROXMOX_TOKEN='root@pam!tofu=anything'") {
		t.Fatalf("printed %s", &printed)
	}
	for path, want := range map[string]int{"/nodes": 200, "/nodes/alpha/status": 403, "/nodes/pve1/qemu": 500} {
		if status, err := getPinned(t, cluster[1]+"/api2/json"+path, ""); status != want || err != nil {
			t.Errorf("%s: %d %v", path, status, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-hetzner", "0.0.0.0:0"}, "-hetzner: \"0.0.0.0:0\" is not a loopback address"},
		{[]string{"-hetzner", "8801"}, "-hetzner: \"8801\" is not an address"},
		{[]string{"-control", "example.com:80"}, "-control: \"example.com:80\" is not a loopback address"},
		{[]string{"-boot", "-1s"}, "-boot: must not be negative"},
		{[]string{"-boot", "5"}, "-boot: a duration needs its unit; say 5s for seconds"},
		{[]string{"-latency", "much"}, "-latency: say a duration such as 5s"},
		{[]string{"-rate-limit", "-1"}, "-rate-limit: say a whole number, 0 or more"},
		{[]string{"-digitalocean", "0.0.0.0:0"}, "-digitalocean: \"0.0.0.0:0\" is not a loopback address"},
		{[]string{"-proxmox", "0.0.0.0:0"}, "-proxmox: \"0.0.0.0:0\" is not a loopback address"},
		{[]string{"-proxmox-deny", "VM.Clone"}, "-proxmox-deny: a denial is given as PATH=PRIVILEGE"},
		{[]string{"-proxmox-version", "7"}, "-proxmox-version: say 8 or 9"},
		{[]string{"-proxmox-nodes", "a,b_c"}, "-proxmox-nodes: \"b_c\" is not the name of a node"},
		{[]string{"-proxmox-scale", "0"}, "-proxmox-scale: say a number above 0"},
		{[]string{"-snapshot-interval", "-1s"}, "-snapshot-interval: must not be negative"},
		{[]string{"-project", "hunter2"}, "-project: a project is given as TOKEN=NAME"},
		{[]string{"now"}, `unexpected argument "now"`},
		{[]string{"-nonsense"}, "nonsense"},
	} {
		var stderr bytes.Buffer
		err := Run(t.Context(), test.args, io.Discard, &stderr)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		// The caller prints the error: nothing may be said twice, or around the usage.
		if stderr.Len() > 0 || len(strings.Split(err.Error(), "\n")) != 2 || strings.Contains(err.Error(), "parse error") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: stderr %q, error %q", test.args, &stderr, err)
		}
	}
	err := Run(t.Context(), []string{"-control", "x", "-hetzner", "y", "z"}, io.Discard, io.Discard)
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("not all that is wrong is said at once: %v", err)
	}
	var stderr bytes.Buffer
	if err := Run(t.Context(), []string{"-h"}, io.Discard, &stderr); err != nil || !strings.Contains(stderr.String(), "-rate-limit calls") || !strings.Contains(stderr.String(), "(default 2s)") {
		t.Errorf("-h: %v %s", err, &stderr)
	}
}

// TestStateThatCannotBeWritten: it shows at the start, before anything listens.
func TestStateThatCannotBeWritten(t *testing.T) {
	var stdout bytes.Buffer
	file := filepath.Join(t.TempDir(), "missing", "state.json")
	err := Run(t.Context(), []string{"-hetzner", "127.0.0.1:0", "-digitalocean", "127.0.0.1:0", "-proxmox", "127.0.0.1:0", "-control", "127.0.0.1:0", "-state", file}, &stdout, io.Discard)
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "-state "+file) || stdout.Len() > 0 {
		t.Errorf("%v, after %s", err, &stdout)
	}
}

// TestNeeds: without projects any token works, with some only theirs.
func TestNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		projects emulator.Projects
		want     string
	}{
		"none": {nil, "Any token will do: export X_TOKEN=anything"},
		"some": {emulator.Projects{"secret-1": "one", "secret-2": "two", "secret-3": "two"}, "X_TOKEN must hold a token that was given with -project (projects: one, two)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{settings: emulator.Settings{Projects: test.projects}}
			got := o.needs(emulator.Cloud{TokenVariable: "X_TOKEN"})
			if !strings.HasPrefix(got, test.want) || strings.Contains(got, "secret") {
				t.Errorf("got %q", got)
			}
		})
	}
}
