// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// boot is how long an emulated machine takes until it runs.
const boot = 200 * time.Millisecond

// cloud is a kind of cloud, and what is made in it.
type cloud struct {
	emulator.Cloud
	machines, volumes int
	// flags are the emulator's own.
	flags []string
	// instance are the lines that an instance has here.
	instance string
	// traces are what a cloud has that no list of objects shows: what is left of them
	// after a destroy is a leak.
	traces func(emulator.Service) []string
}

func (c cloud) String() string { return c.Name }

// clouds are all of them. Proxmox VE has no volumes of its own: it gets two more
// machines in their place.
func clouds() []cloud {
	none := func(emulator.Service) []string { return nil }
	return []cloud{
		{hetzner.Cloud(), 5, 2, nil, "offer = \"cx23\"\n  image = \"debian-12\"", none},
		{
			digitalocean.Cloud(), 5, 2, nil, "offer = \"s-1vcpu-1gb\"\n  image = \"debian-12-x64\"",
			func(s emulator.Service) []string { return objectTags(s.(*digitalocean.Service).Tags()) },
		},
		{
			proxmox.Cloud(), 7, 0, []string{"-proxmox-http", "-proxmox-scale=0.02"}, "offer = \"1c-2g\"\n  image = \"debian-13\"",
			func(s emulator.Service) []string { return s.(*proxmox.Service).Volumes() },
		},
	}
}

// objectTags are the tags that one object has for itself. The others are few, and stay.
func objectTags(tags []string) []string {
	return slices.DeleteFunc(tags, func(tag string) bool {
		return !strings.HasPrefix(tag, "better-compute:key:") && !strings.HasPrefix(tag, "better-compute:claim:")
	})
}

// secret is what no output and no state may have: the token, or the part of it that is
// no name.
const secret = "Zq81-never-show-me"

// token is a value that the emulator takes for the token's variable.
func (c cloud) token() string {
	name, _, named := strings.Cut(strings.Trim(c.Token, "'"), "=")
	if named {
		return name + "=" + secret
	}
	return secret
}

// world is a cloud that is served.
type world struct {
	cloud
	*gate
	// service is the emulator behind the gate.
	service emulator.Service
	address string
	// before are the traces of the empty cloud.
	before []string
}

// serve serves an empty cloud on a free loopback port until the test ends.
func (c cloud) serve(t *testing.T) *world {
	t.Helper()
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	maker := c.Maker(flags)
	if err := flags.Parse(c.flags); err != nil {
		t.Fatal(err)
	}
	service, err := maker(emulator.Settings{Boot: boot})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cloud: c, gate: &gate{Service: service}, service: service, before: c.traces(service)}
	e, err := emulator.New("", func(err error) { t.Error(err) }, w.gate)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	bound, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- e.ListenAndServe(ctx, emulator.Listening{
			Control:  "127.0.0.1:0",
			Services: map[string]string{c.Name: "127.0.0.1:0"},
			Ready:    func(_ string, services map[string]string) { bound <- services[c.Name] },
		})
	}()
	select {
	case err := <-ended:
		cancel()
		t.Fatal("the emulator ended at once: ", err)
	case w.address = <-bound:
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// configuration is an account, a pool, machines, and a volume at each of the first.
func (w *world) configuration(machines int, adopt bool) string {
	volumes := ""
	if w.volumes > 0 {
		volumes = fmt.Sprintf(`
resource "bettercompute_provider_volume" "data" {
  count     = %d
  name      = "data-${count.index}"
  pool      = bettercompute_pool.web.uri
  size_gib  = 10
  instances = [bettercompute_instance.web[count.index].uri]
}
`, w.volumes)
	}
	return fmt.Sprintf(`terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}
resource "bettercompute_provider_account" "main" {
  name = "main"
  %s
}
resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri
  adopt            = %t
}
resource "bettercompute_instance" "web" {
  count = %d
  name  = "web-${count.index}"
  pool  = bettercompute_pool.web.uri
  %s
}
%s`, w.Account(w.service, w.address), adopt, machines, w.instance, volumes)
}

// extra are the traces that the empty cloud didn't have.
func (w *world) extra() []string {
	return slices.DeleteFunc(w.traces(w.service), func(trace string) bool { return slices.Contains(w.before, trace) })
}
