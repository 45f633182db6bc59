// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

type fixed string

func (f fixed) Resolve(context.Context, string) (string, error) { return string(f), nil }

func (f fixed) Forget(string) {}

const (
	goodToken  = "bc@pve!tofu=good"
	wrongToken = "bc@pve!tofu=wrong"
)

func newCluster(t *testing.T, version int) *emulated.Service {
	t.Helper()
	cluster, err := emulated.New(emulated.Options{
		Boot: 20 * time.Second, Latency: 20 * time.Millisecond, PlainHTTP: true, Version: version,
		Projects: emulator.Projects{goodToken: emulator.DefaultProject},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func subject(t *testing.T, cluster *emulated.Service) conformance.Subject {
	t.Helper()
	registry, err := backends.NewRegistry(proxmox.New(proxmox.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	account, err := reference.ParseKind(registry, reference.KindAccount, "proxmox://root/main?token=env://PROXMOX_TOKEN&url=https://pve.test:8006")
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Subject{
		Account:      account,
		Environment:  backends.Environment{Secrets: fixed(goodToken), Transport: emulator.Transport(cluster), UserAgent: "test"},
		Offer:        "1c-2g",
		Image:        "debian-13",
		Prefix:       "ci-1",
		WrongSecrets: fixed(wrongToken),
	}
}

// conforms runs the cases, and finds that nothing is left.
func conforms(t *testing.T, cluster *emulated.Service, s conformance.Subject) {
	t.Helper()
	report := conformance.Run(t.Context(), s)
	var text strings.Builder
	for _, result := range report.Results {
		text.WriteString(result.String())
	}
	t.Log("\n" + text.String() + report.Summary())
	if !report.OK() {
		t.Error("a case failed")
	}
	if left := cluster.Machines(); len(left) > 0 {
		t.Errorf("%d VMs are left: %+v", len(left), left)
	}
}

func TestConforms(t *testing.T) {
	for name, version := range map[string]int{"8": 8, "9": 9} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t, version)
				conforms(t, cluster, subject(t, cluster))
			})
		})
	}
}

// TestConformsOverTLS runs against a certificate that only the account's settings
// vouch for; without them nothing is said to work.
func TestConformsOverTLS(t *testing.T) {
	cluster, err := emulated.New(emulated.Options{Projects: emulator.Projects{goodToken: emulator.DefaultProject}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(cluster)
	server.Listener = tls.NewListener(server.Listener, cluster.TLSConfig())
	server.Start()
	t.Cleanup(server.Close)
	registry, err := backends.NewRegistry(proxmox.New(proxmox.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	authority := base64.RawURLEncoding.EncodeToString(cluster.Certificate().Raw)
	for name, test := range map[string]struct {
		settings string
		works    bool
	}{
		"fingerprint":         {"tls_fingerprint=" + strings.ReplaceAll(cluster.Fingerprint(), ":", "") + "&", true},
		"another fingerprint": {"tls_fingerprint=" + strings.Repeat("00", 32) + "&", false},
		"CA":                  {"ca_certificate=" + authority + "&", true},
		"insecure":            {"insecure=true&", true},
		"nothing":             {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			account, err := reference.ParseKind(registry, reference.KindAccount, fmt.Sprintf(
				"proxmox://root/main?%stoken=env://PROXMOX_TOKEN&url=https://%s", test.settings, server.Listener.Addr()))
			if err != nil {
				t.Fatal(err)
			}
			report := conformance.Run(t.Context(), conformance.Subject{
				Account: account, Environment: backends.Environment{Secrets: fixed(goodToken), UserAgent: "test"},
				Offer: "1c-2g", Image: "debian-13", Prefix: "ci-1", WrongSecrets: fixed(wrongToken),
				Only: regexp.MustCompile("^(?:definition|credentials|offers|check)/"),
			})
			if report.OK() != test.works || len(report.Results) < 4 {
				t.Errorf("%+v", report.Results)
			}
			for _, result := range report.Results {
				if test.works && result.Calls < 0 {
					t.Errorf("%s: its calls weren't counted", result.Case.Name)
				}
			}
		})
	}
}

// TestConformsUnderFaults: what a cluster is known to do to its clients is no breach
// of the contract.
func TestConformsUnderFaults(t *testing.T) {
	for name, rule := range map[string]emulator.Rule{
		"clone locks":     {Method: http.MethodPost, Path: "*/clone", Nth: 1, Times: 6, Kind: emulator.KindLockTimeout},
		"option locks":    {Method: http.MethodPut, Path: "*/config", Nth: 1, Times: 6, Kind: emulator.KindLockTimeout},
		"a lost clone":    {Method: http.MethodPost, Path: "*/clone", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer},
		"lost options":    {Method: http.MethodPut, Path: "*/config", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer},
		"a lost start":    {Method: http.MethodPost, Path: "*/status/start", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer},
		"a lost deletion": {Method: http.MethodDelete, Path: "*", Nth: 1, Times: 1, Kind: emulator.KindLoseAnswer},
		"a proxy's page":  {Method: http.MethodGet, Path: "*/config", Nth: 2, Times: 2, Kind: emulator.KindHTML},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t, 9)
				s := subject(t, cluster)
				s.Only = regexp.MustCompile("^(?:create/.*|find/.*|get/.*|mark/replaces|claim/.*|reinstall/.*|power/.*|delete/removes|delete/again)$")
				if err := cluster.AddFault(rule); err != nil {
					t.Fatal(err)
				}
				conforms(t, cluster, s)
			})
		})
	}
}
