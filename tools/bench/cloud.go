// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// The kinds of objects that are measured.
const (
	instances = "instances"
	volumes   = "volumes"
)

// workload is N objects of a kind in one cloud: what one line of a chart shows.
type workload struct {
	cloud emulator.Cloud
	kind  string
	// block is the resource that is made N times, without its name and pool.
	block string
}

// workloads are all that are measured. Proxmox VE has no volumes of its own.
func workloads() []workload {
	instance := func(cloud emulator.Cloud, offer, image string) workload {
		return workload{cloud, instances, fmt.Sprintf("offer = %q\n  image = %q", offer, image)}
	}
	return []workload{
		instance(hetzner.Cloud(), "cx23", "debian-12"),
		instance(digitalocean.Cloud(), "s-1vcpu-1gb", "debian-12-x64"),
		instance(proxmox.Cloud(), "1c-2g", "debian-13"),
		{hetzner.Cloud(), volumes, "size_gib = 10"},
		{digitalocean.Cloud(), volumes, "size_gib = 10"},
	}
}

// title names the workload for readers.
func (w workload) title() string { return w.cloud.Title + ", " + w.kind }

// configuration is what the CLI applies: an account, a pool and N objects.
func (w workload) configuration(n int, account string) string {
	types := map[string]string{instances: "bettercompute_instance", volumes: "bettercompute_provider_volume"}
	return fmt.Sprintf(`terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

resource "bettercompute_provider_account" "bench" {
  name = "bench"

  %s
}

resource "bettercompute_pool" "bench" {
  name             = "bench"
  provider_account = bettercompute_provider_account.bench.uri
}

resource %q "bench" {
  count = %d

  name = "bench-${count.index}"
  pool = bettercompute_pool.bench.uri
  %s
}
`, strings.ReplaceAll(account, "\n", "\n  "), types[w.kind], n, w.block)
}

// token is a value that the emulator takes for the token's variable.
func (w workload) token() string {
	if token := strings.Trim(w.cloud.Token, "'"); token != "" {
		return token
	}
	return "anything"
}

// serving is an emulated cloud that answers.
type serving struct {
	emulator.Service
	address string
	stop    func() error
}

// serve serves a cloud on a free loopback port until stop is called.
func serve(ctx context.Context, cloud emulator.Cloud, settings emulator.Settings) (*serving, error) {
	service, err := cloud.Maker(flag.NewFlagSet(cloud.Name, flag.ContinueOnError))(settings)
	if err != nil {
		return nil, err
	}
	e, err := emulator.New("", func(error) {}, service)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	bound, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- e.ListenAndServe(ctx, emulator.Listening{
			Control:  "127.0.0.1:0",
			Services: map[string]string{cloud.Name: "127.0.0.1:0"},
			Ready:    func(_ string, services map[string]string) { bound <- services[cloud.Name] },
		})
	}()
	select {
	case err := <-ended:
		cancel()
		return nil, errors.Join(errors.New("the emulator ended at once"), err)
	case at := <-bound:
		return &serving{service, at, func() error { cancel(); return <-ended }}, nil
	}
}

// slowDown makes each later call take at least so long.
func (s *serving) slowDown(latency time.Duration) error {
	return s.Gate().AddFault(emulator.Rule{Kind: emulator.KindDelay, Times: emulator.Forever, Delay: emulator.Duration(latency)})
}
