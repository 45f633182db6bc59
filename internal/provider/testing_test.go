// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/provider"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const (
	// tokenVariable is the environment variable that a world's account names.
	tokenVariable = "BETTERCOMPUTE_TEST_TOKEN"
	// token is its value, which must show nowhere.
	token = "hctoken-Zq81-never-show-me"
	// accountURI is the uri of [world.account].
	accountURI = "hetzner-cloud://root/main?token=env://" + tokenVariable
	// poolURI is the uri of [world.pool].
	poolURI = "hetzner-cloud://root/main/web?token=env://" + tokenVariable
)

// TestMain sets what is read once per process, before anything reads it. Waits are
// a hundredth of what they are in earnest.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{tokenVariable: token, backends.TimeScaleVariable: "0.01"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// world is a provider whose clouds are emulated in memory. Each has its own, so
// tests with a world can run in parallel.
type world struct {
	t *testing.T
	// hetzner is the emulated Hetzner Cloud.
	hetzner *hetzneremulator.Service
	// clouds is the registry behind the provider.
	clouds *backends.Registry
	// log gets what the provider logs at TRACE; nil is nobody.
	log *lockedBuffer
}

// newWorld is an empty cloud in which everything is done when it is asked for.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, hetzneremulator.Options{})
}

// newWorldWith is [newWorld] with an emulated Hetzner Cloud as it is wanted.
func newWorldWith(t *testing.T, options hetzneremulator.Options) *world {
	t.Helper()
	service := hetzneremulator.New(options)
	clouds, err := backends.NewRegistry(hetzner.New(hetzner.Options{Transport: emulator.Transport(service)}))
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, hetzner: service, clouds: clouds}
}

// factories are the provider as terraform-plugin-testing wants it.
func (w *world) factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"bettercompute": func() (tfprotov6.ProviderServer, error) { return w.server(), nil },
	}
}

// server is the provider as a protocol server.
func (w *world) server() tfprotov6.ProviderServer {
	newProvider, err := provider.NewWith(provider.Options{Version: "0.0.1", Registry: w.clouds})
	if err != nil {
		w.t.Fatal(err)
	}
	return scanned(w.t, provider.ProtocolServer(newProvider()), w.log)
}

// account is the configuration of an account, bettercompute_provider_account.main.
// Lines are put into its hetzner_cloud attribute besides the token.
func (w *world) account(lines ...string) string {
	return accountNamed("main", lines...)
}

func accountNamed(name string, lines ...string) string {
	return fmt.Sprintf(`
resource "bettercompute_provider_account" "main" {
  name = %q
  hetzner_cloud = {
    token = "env://%s"
    %s
  }
}
`, name, tokenVariable, strings.Join(lines, "\n    "))
}

// pool is the configuration of an account and a pool in it, bettercompute_pool.web.
// Lines are put into the pool.
func (w *world) pool(lines ...string) string {
	return w.account() + fmt.Sprintf(`
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
  %s
}
`, strings.Join(lines, "\n  "))
}

// calls are the calls that reached the emulated cloud since the last
// [world.forgetCalls], as "GET /v1/servers".
func (w *world) calls() []string {
	var out []string
	for _, c := range w.hetzner.Calls() {
		out = append(out, c.Method+" "+c.Path)
	}
	return out
}

// forgetCalls begins counting anew.
func (w *world) forgetCalls() { w.hetzner.ClearCalls() }

// makeMachine makes a machine behind the provider's back that carries the marks of
// a pool's instance, complete, as another state's would.
func (w *world) makeMachine(poolURI, name string) backends.Machine {
	w.t.Helper()
	pool, err := reference.ParseKind(w.clouds, reference.KindPool, poolURI)
	if err != nil {
		w.t.Fatal(err)
	}
	backend, err := pool.Definition().Create(pool.FullConfig(), backends.Environment{Secrets: fixedSecrets{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := backend.MakeMachine(w.t.Context(), backends.MachineSpec{
		Name: name, Offer: "cx23", Image: "ubuntu-24.04", Region: "fsn1", Start: true,
		Marks: backends.Marks{
			Managed: true, Key: pool.InstanceRef(name, "").ID(), Account: pool.AccountID(), Pool: pool.PoolID(), Claim: "another-states",
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	marks := m.Marks
	marks.Complete = true
	if m, err = backend.MarkMachine(w.t.Context(), m, marks); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// deleteMachines deletes all machines behind the provider's back.
func (w *world) deleteMachines() {
	for _, s := range w.hetzner.Servers() {
		w.hetzner.Delete(s.ID)
	}
}

// fixedSecrets gives the test's token for every reference.
type fixedSecrets struct{}

func (fixedSecrets) Resolve(context.Context, string) (string, error) { return token, nil }
func (fixedSecrets) Forget(string)                                   {}

// refuse has the emulated cloud answer every call with a status from now on.
func (w *world) refuse(status int) {
	w.t.Helper()
	err := w.hetzner.AddFault(emulator.Rule{Service: "hetzner", Path: "*", Kind: emulator.KindStatus, Status: status, Times: emulator.Forever})
	if err != nil {
		w.t.Fatal(err)
	}
}

// empty fails when the cloud has servers, after a destroy.
func (w *world) empty(*terraform.State) error {
	if servers := w.hetzner.Servers(); len(servers) > 0 {
		return fmt.Errorf("the cloud still has %+v", servers)
	}
	return nil
}

// fault sets a fault of the emulated cloud.
func (w *world) fault(rule emulator.Rule) {
	w.t.Helper()
	if err := w.hetzner.AddFault(rule); err != nil {
		w.t.Fatal(err)
	}
}

// api is the vendor's own client, as someone with the cloud's console.
func (w *world) api() *hcloud.Client {
	return hcloud.NewClient(hcloud.WithToken(token), hcloud.WithEndpoint("http://emulator/v1"),
		hcloud.WithHTTPClient(&http.Client{Transport: emulator.Transport(w.hetzner)}))
}

// resize gives a server another type, as a user of the console does.
func (w *world) resize(id int64, serverType string) {
	w.t.Helper()
	server := &hcloud.Server{ID: id}
	w.hetzner.SetPower(id, false)
	_, _, err := w.api().Server.ChangeType(w.t.Context(), server, hcloud.ServerChangeTypeOpts{ServerType: &hcloud.ServerType{Name: serverType}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.hetzner.SetPower(id, true)
}

// makeNetwork makes a private network and returns its id.
func (w *world) makeNetwork() string {
	w.t.Helper()
	_, all, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		w.t.Fatal(err)
	}
	_, part, err := net.ParseCIDR("10.0.0.0/24")
	if err != nil {
		w.t.Fatal(err)
	}
	network, _, err := w.api().Network.Create(w.t.Context(), hcloud.NetworkCreateOpts{
		Name: "private", IPRange: all,
		Subnets: []hcloud.NetworkSubnet{{Type: hcloud.NetworkSubnetTypeCloud, NetworkZone: hcloud.NetworkZoneEUCentral, IPRange: part}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return strconv.FormatInt(network.ID, 10)
}
