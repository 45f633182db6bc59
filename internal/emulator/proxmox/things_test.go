// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/luthermonson/go-proxmox"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestLesserThings are the answers that no other test looks at.
func TestLesserThings(t *testing.T) {
	s, a := stopped(t, proxmox.Options{})
	if got := a.ok("GET", "/pools/tofu").object()["members"]; len(got.([]any)) != 0 {
		t.Errorf("members %v", got)
	}
	a.done("OK", "POST", debian+"/clone", "newid=102", "pool=tofu")
	for _, call := range [][]string{{"/pools/tofu"}, {"/pools", "poolid=tofu"}} {
		got := a.ok("GET", call[0], call[1:]...)
		if !strings.Contains(got.body, `"vmid":102`) || strings.Contains(got.body, `"vmid":101`) {
			t.Errorf("%v: %s", call, got)
		}
	}
	a.refused(500, "pool 'nope' does not exist", "GET", "/pools/nope")
	s.SetHA(102, "started")
	if got := a.ok("GET", "/cluster/ha/resources").rows(); len(got) != 1 || got[0]["sid"] != "vm:102" || got[0]["state"] != "started" {
		t.Errorf("HA %v", got)
	}
	if got := a.ok("GET", "/cluster/ha/resources/vm:102").object(); got["sid"] != "vm:102" {
		t.Errorf("HA %v", got)
	}
	a.refused(500, "resource ID 'vm:102' already defined", "POST", "/cluster/ha/resources", "sid=vm:102")
	a.ok("DELETE", "/cluster/ha/resources/vm:102")
	a.refused(500, "no such resource 'vm:102'", "GET", "/cluster/ha/resources/102")
	a.ok("POST", "/cluster/ha/resources", "sid=102", "state=stopped")
	if got := a.ok("GET", "/cluster/ha/resources/vm:102").object(); got["state"] != "stopped" {
		t.Errorf("HA %v", got)
	}
	a.refused(500, "unable to add template 'vm:9000' as HA resource", "POST", "/cluster/ha/resources", "sid=vm:9000")
	a.refused(500, "resource 'vm' '4000' does not exist in cluster", "POST", "/cluster/ha/resources", "sid=4000")
	if got := a.ok("GET", "/nodes/pve1/network", "type=any_bridge").rows(); len(got) != 1 || got[0]["iface"] != "vmbr0" {
		t.Errorf("bridges %v", got)
	}
	s.SetDenials(proxmox.Denials{{Path: "/sdn", Privilege: "SDN.Use"}, {Path: "/sdn", Privilege: "SDN.Audit"}})
	if got := a.ok("GET", "/nodes/pve1/network").rows(); len(got) != 0 {
		t.Errorf("bridges %v", got)
	}
	s.SetDenials(nil)
	if err := s.AddFault(emulator.Rule{Method: "POST", Path: "*/status/start", Kind: emulator.KindTaskWarnings}); err != nil {
		t.Fatal(err)
	}
	a.done("WARNINGS: 1", "POST", vm+"/status/start")
	got := a.ok("GET", "/nodes/pve1/storage/shared/status").object()
	if got["shared"] != 1.0 || got["used"].(float64) < 3<<30 || got["used"].(float64)+got["avail"].(float64) != got["total"] {
		t.Errorf("storage %v", got)
	}
	a.refused(500, "storage 'nope' does not exist", "GET", "/nodes/pve1/storage/nope/status")
	if got := a.ok("GET", "/nodes/pve1/storage/shared/content", "vmid=102").rows(); len(got) != 2 || got[1]["parent"] != "base-9000-disk-0" {
		t.Errorf("content %v", got)
	}
	if got := a.ok("GET", "/nodes/pve1/storage", "content=snippets").rows(); len(got) != 1 || got[0]["storage"] != "local" {
		t.Errorf("storages %v", got)
	}
	a.done("base volume 'shared:base-9000-disk-0' is still in use by linked cloned", "DELETE", "/nodes/pve1/storage/shared/content/shared:base-9000-disk-0")
	if got := a.ok("GET", "/nodes/pve1/lxc").rows(); len(got) != 1 || got[0]["name"] != "dns" || got[0]["status"] != "running" {
		t.Errorf("containers %v", got)
	}
	if got := a.ok("GET", "/nodes/pve2/version").object(); got["version"] != "9.2.11" {
		t.Errorf("version %v", got)
	}
	if got := a.ok("GET", vm+"/cloudinit/dump", "type=user"); !strings.HasPrefix(got.text(), "#cloud-config\nhostname: web\n") {
		t.Errorf("dump %s", got)
	}
}

// TestTaskFilters: what of a node's tasks is listed.
func TestTaskFilters(t *testing.T) {
	_, a := stopped(t, proxmox.Options{})
	a.done("OK", "POST", vm+"/status/start")
	a.done("VM 101 already running", "POST", vm+"/status/start")
	for filter, want := range map[string]int{
		"source=archive": 3, "source=active": 0, "source=all": 3, "errors=1": 1, "statusfilter=ok": 2, "statusfilter=error,ok": 3,
		"typefilter=qmstart": 2, "vmid=101": 2, "vmid=9000": 1, "userfilter=root@pam": 3, "userfilter=joe": 0, "since=99999999999": 0,
		"until=0": 0, "limit=1": 1, "start=2": 1, "start=9": 0, "limit=0": 3,
	} {
		if got := a.ok("GET", "/nodes/pve1/tasks", filter).rows(); len(got) != want {
			t.Errorf("%s: %d tasks, want %d: %v", filter, len(got), want, got)
		}
	}
}

// TestCertificate: a client that knows it as an authority trusts the server, by the
// address and by the name of a node; one that doesn't know it doesn't.
func TestCertificate(t *testing.T) {
	s := newService(t, proxmox.Options{Nodes: []string{"alpha"}})
	server := httptest.NewUnstartedServer(s)
	server.Listener = tls.NewListener(server.Listener, s.TLSConfig())
	server.Start()
	t.Cleanup(server.Close)
	address := "https://" + server.Listener.Addr().String() + "/api2/json"
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	// Each client gets a transport of its own, which ends with the test.
	try := func(options ...client.Option) error {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: transport}), client.WithAPIToken(token, secret)}, options...)
		_, err := client.NewClient(address, options...).Version(t.Context())
		return err
	}
	if err := try(client.WithRootCAs(pool)); err != nil {
		t.Error(err)
	}
	if err := try(); err == nil {
		t.Error("a client that doesn't know the certificate trusts it")
	}
	if err := s.Certificate().VerifyHostname("alpha"); err != nil {
		t.Error(err)
	}
	if plain := newService(t, proxmox.Options{PlainHTTP: true}); plain.TLSConfig() != nil || plain.Fingerprint() != "" || plain.Certificate() != nil {
		t.Error("plain HTTP has a certificate")
	}
}
