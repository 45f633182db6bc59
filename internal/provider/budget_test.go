// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"golang.org/x/sync/semaphore"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	oceanemulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	hetzneremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	clusteremulator "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// The budgets of DESIGN.md §7, asserted on the emulators' call logs, in fake time. The
// clouds are as slow as the windows are short in these tests.

// budgetSizes are one object, those around a page's end, and some pages.
var budgetSizes = []int{1, 49, 50, 51, 120, 430}

// parallelism is the CLIs' default.
const parallelism = 10

// latency is that of a call, before scaling.
const latency = 50 * time.Millisecond

// budgetCloud is a cloud, what its objects are made from, and what they may cost.
type budgetCloud struct {
	account map[string]map[string]string // the attribute of the account, and what is in it
	offer   string
	image   string
	service func(t *testing.T) (emulator.Service, *backends.Definition)
	// refresh is how many calls a refresh of n instances in one pool may cost.
	refresh func(n int) int
	// perCreate is how many calls making one instance may cost besides polls.
	perCreate int
	// perDestroy is how many calls destroying one may cost besides polls.
	perDestroy int
	page       int // objects per page of a list; 0: everything
	// atOnce is how many are made at the same time; 0: all of them.
	atOnce int
	// poll tells whether a call looks whether something is done, for all who wait.
	poll func(c emulator.Call) bool
	// guest tells whether a call asks one guest, which nobody can share.
	guest func(c emulator.Call) bool
}

// isPoll: the catalog is read by GET too, once.
func isPoll(c emulator.Call) bool { return c.Method == http.MethodGet }

var budgetClouds = map[string]budgetCloud{
	"hetzner": {
		account: map[string]map[string]string{"hetzner_cloud": {"token": "env://" + tokenVariable}},
		offer:   "cx23", image: "ubuntu-24.04",
		service: func(*testing.T) (emulator.Service, *backends.Definition) {
			s := hetzneremulator.New(hetzneremulator.Options{Boot: backends.Scale(15 * time.Second), Latency: backends.Scale(latency)})
			return s, hetzner.New(hetzner.Options{Transport: emulator.Transport(s)})
		},
		refresh: func(n int) int { return pagesOf(n, 50) + 1 + 1 }, perCreate: 2, perDestroy: 1, poll: isPoll,
		// Those that are waited for are a list of their own, which fills a page.
		atOnce: 50,
	},
	"digitalocean": {
		account: map[string]map[string]string{"digitalocean": {"token": "env://" + tokenVariable, "region": "fra1"}},
		offer:   "s-1vcpu-1gb", image: "debian-12-x64",
		service: func(*testing.T) (emulator.Service, *backends.Definition) {
			s := oceanemulator.New(oceanemulator.Options{Boot: backends.Scale(40 * time.Second), Latency: backends.Scale(latency)})
			return s, digitalocean.New(digitalocean.Options{Transport: emulator.Transport(s)})
		},
		refresh: func(n int) int { return pagesOf(n, 200) + 1 + 1 }, perCreate: 2, perDestroy: 4, poll: isPoll, page: 200,
	},
	"proxmox": {
		account: map[string]map[string]string{"proxmox": {"token": "env://PROXMOX_TOKEN", "url": "https://pve.test:8006"}},
		offer:   "1c-2g", image: "debian-13",
		service: func(t *testing.T) (emulator.Service, *backends.Definition) {
			t.Helper()
			s, err := clusteremulator.New(clusteremulator.Options{PlainHTTP: true, Boot: backends.Scale(20 * time.Second), Scale: 0.01, Latency: backends.Scale(latency)})
			if err != nil {
				t.Fatal(err)
			}
			return s, proxmox.New(proxmox.Options{Transport: emulator.Transport(s)})
		},
		refresh: func(int) int { return 2 + 2 }, perCreate: 6, perDestroy: 3, atOnce: parallelism,
		// Making a VM takes reading its configuration, before it is changed and before it
		// is marked.
		poll:  func(c emulator.Call) bool { return isPoll(c) && !strings.HasSuffix(c.Path, "/config") && !ofAgent(c) },
		guest: ofAgent,
	},
}

func ofAgent(c emulator.Call) bool { return strings.Contains(c.Path, "/agent/") }

// mostAgentCalls is how often a guest that has just been started is asked for its
// addresses.
const mostAgentCalls = 6

func pagesOf(n, size int) int { return (n + size - 1) / size }

// budget is a cloud with a pool, and the calls that were made there.
type budget struct {
	*world
	cloud   budgetCloud
	service emulator.Service
	pool    string
}

func newBudget(t *testing.T, cloud budgetCloud) *budget {
	t.Helper()
	service, definition := cloud.service(t)
	clouds, err := backends.NewRegistry(definition)
	if err != nil {
		t.Fatal(err)
	}
	b := &budget{world: &world{t: t, clouds: clouds}, cloud: cloud, service: service}
	w := b.wire()
	text := func(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	given := map[string]tftypes.Value{"name": text("main")}
	for attribute, values := range cloud.account {
		typ := w.types[accountType].AttributeTypes[attribute]
		inner := nulls(typ)
		for name, value := range values {
			inner[name] = text(value)
		}
		given[attribute] = tftypes.NewValue(typ, inner)
	}
	account, diags := w.apply(t.Context(), accountType, w.none(accountType), w.config(accountType, given))
	account = done(t, account, diags)
	pool, diags := w.apply(t.Context(), poolType, w.none(poolType), w.config(poolType, map[string]tftypes.Value{
		"name": text("web"), "provider_account": text(account.text(t, "uri")),
	}))
	b.pool = done(t, pool, diags).text(t, "uri")
	b.forget()
	return b
}

const (
	accountType = "bettercompute_provider_account"
	poolType    = "bettercompute_pool"
)

func (b *budget) forget() { b.service.Gate().ClearCalls() }

// cost is what was called since the last forget: polls, calls to guests, and all
// others.
func (b *budget) cost() (calls, polls, guests int) {
	for _, c := range b.service.Gate().Calls() {
		switch {
		case b.cloud.guest != nil && b.cloud.guest(c):
			guests++
		case b.cloud.poll(c):
			polls++
		default:
			calls++
		}
	}
	return calls, polls, guests
}

// log says what was called how often, for the message of a test that fails.
func (b *budget) log() string {
	counts := map[string]int{}
	for _, c := range b.service.Gate().Calls() {
		parts := strings.Split(c.Path, "/")
		for i, p := range parts {
			if _, err := strconv.Atoi(p); err == nil {
				parts[i] = "N"
			} else if i > 0 && parts[i-1] == "tags" {
				parts[i] = "TAG"
			}
		}
		counts[c.Method+" "+strings.Join(parts, "/")]++
	}
	return fmt.Sprint(counts)
}

// each does something to n things, some at a time and in no order, as a CLI does.
func each(n, atOnce int, do func(i int)) {
	slots := semaphore.NewWeighted(int64(atOnce))
	var wg sync.WaitGroup
	for _, i := range rand.Perm(n) {
		_ = slots.Acquire(context.Background(), 1)
		wg.Go(func() {
			defer slots.Release(1)
			do(i)
		})
	}
	wg.Wait()
}

func (b *budget) instances(w *wire, n int) []tftypes.Value {
	out := make([]tftypes.Value, n)
	for i := range out {
		given := map[string]tftypes.Value{}
		for name, value := range map[string]string{"name": fmt.Sprintf("web-%d", i), "pool": b.pool, "offer": b.cloud.offer, "image": b.cloud.image} {
			given[name] = tftypes.NewValue(tftypes.String, value)
		}
		out[i] = w.config(instanceType, given)
	}
	return out
}

func TestBudgets(t *testing.T) {
	t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
	for name, cloud := range budgetClouds {
		one := sync.OnceValue(func() (polls int) { // of making one instance
			synctest.Test(t, func(t *testing.T) { polls = testBudget(t, cloud, 1) })
			return polls
		})
		for _, n := range budgetSizes {
			if raceDetector && n > 51 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				one := one()
				synctest.Test(t, func(t *testing.T) {
					polls := testBudget(t, cloud, n)
					// What waits at the same time shares its polls, which cost what lists cost.
					rounds, pages := 1, 1
					if cloud.atOnce > 0 {
						rounds = pagesOf(n, cloud.atOnce)
					}
					if cloud.page > 0 {
						pages = pagesOf(n, cloud.page)
					}
					if most := (one + 2) * rounds * pages; polls > most {
						t.Errorf("creating %d took %d polls, more than %d: one takes %d", n, polls, most, one)
					}
				})
			})
		}
	}
}

// testBudget plans, makes, refreshes and destroys n instances, and returns the polls of
// making them. Each step is a process of its own.
func testBudget(t *testing.T, cloud budgetCloud, n int) (polls int) {
	t.Helper()
	b := newBudget(t, cloud)
	w := b.wire()
	wanted, planned, states := b.instances(w, n), make([]object, n), make([]object, n)
	step := func(what string, most, atOnce int, do func(w *wire, i int) []*tfprotov6.Diagnostic) (polls int) {
		b.forget()
		w := b.wire()
		each(n, atOnce, func(i int) {
			if problems := errorsOf(do(w, i)); problems != "" {
				t.Error(problems)
			}
		})
		calls, polls, guests := b.cost()
		t.Logf("%s %d: %d calls, %d polls, %d calls to guests: %s", what, n, calls, polls, guests, b.log())
		if calls > most {
			t.Errorf("%s %d took %d calls, more than %d", what, n, calls, most)
		}
		if guests > n*mostAgentCalls {
			t.Errorf("%s %d took %d calls to guests", what, n, guests)
		}
		return polls
	}
	none := w.none(instanceType)
	looks := step("planning", 8, parallelism, func(w *wire, i int) (diags []*tfprotov6.Diagnostic) {
		planned[i], diags = w.plan(instanceType, none, wanted[i])
		return diags
	})
	if looks > 8 {
		t.Errorf("planning to make %d looked %d times", n, looks)
	}
	atOnce := cmp.Or(cloud.atOnce, n)
	polls = step("making", cloud.perCreate*n+8, atOnce, func(w *wire, i int) (diags []*tfprotov6.Diagnostic) {
		states[i], diags = w.applyPlanned(t.Context(), instanceType, none, planned[i], wanted[i])
		return diags
	})
	reads := step("refreshing", 0, parallelism, func(w *wire, i int) (diags []*tfprotov6.Diagnostic) {
		states[i], diags = w.read(instanceType, states[i])
		return diags
	})
	if most := cloud.refresh(n); reads > most {
		t.Errorf("refreshing %d took %d calls, more than %d", n, reads, most)
	}
	// A state that owns a few of a large pool doesn't pay for the pool.
	few := min(n, 3)
	reads = step("refreshing a few of", 0, parallelism, func(w *wire, i int) (diags []*tfprotov6.Diagnostic) {
		if i < few {
			_, diags = w.read(instanceType, states[i])
		}
		return diags
	})
	if reads > 6 {
		t.Errorf("refreshing %d of %d took %d calls", few, n, reads)
	}
	step("destroying", n*cloud.perDestroy, atOnce, func(w *wire, i int) []*tfprotov6.Diagnostic {
		_, diags := w.destroy(instanceType, states[i])
		return diags
	})
	return polls
}

// TestVolumeBudgets: a refresh of volumes and snapshots costs the pages of their lists;
// at DigitalOcean those are the whole project's.
func TestVolumeBudgets(t *testing.T) {
	for name, page := range map[string]int{"hetzner": 50, "digitalocean": 200} {
		cloud := budgetClouds[name]
		for _, n := range []int{1, 51, 120, 201} {
			if raceDetector && n > 51 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBudget(t, cloud)
					w := b.wire()
					volumes, snapshots := make([]object, n), make([]object, n)
					number := func(i int64) tftypes.Value { return tftypes.NewValue(tftypes.Number, i) }
					text := func(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
					each(n, n, func(i int) {
						made, diags := w.apply(t.Context(), volumeType, w.none(volumeType), w.config(volumeType, map[string]tftypes.Value{
							"name": text(fmt.Sprintf("data-%d", i)), "pool": text(b.pool), "size_gib": number(10),
						}))
						volumes[i] = done(t, made, diags)
						if name == "digitalocean" {
							made, diags = w.apply(t.Context(), snapshotType, w.none(snapshotType), w.config(snapshotType, map[string]tftypes.Value{
								"name": text(fmt.Sprintf("data-%d", i)), "volume": text(volumes[i].text(t, "uri")),
							}))
							snapshots[i] = done(t, made, diags)
						}
					})
					b.forget()
					w = b.wire()
					each(n, parallelism, func(i int) {
						_, diags := w.read(volumeType, volumes[i])
						done(t, volumes[i], diags)
						if name == "digitalocean" {
							_, diags = w.read(snapshotType, snapshots[i])
							done(t, snapshots[i], diags)
						}
					})
					most := pagesOf(n, page) + 2
					if name == "digitalocean" {
						most += pagesOf(n, page)
					}
					if calls, polls, _ := b.cost(); calls+polls > most {
						t.Errorf("refreshing %d took %d calls, more than %d: %s", n, calls+polls, most, b.log())
					}
				})
			})
		}
	}
}
