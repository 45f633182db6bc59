// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package registry names the clouds that this program knows. A new cloud is a
// package beside it and one line here.
package registry

import (
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/proxmox"
)

// New checks and registers all clouds.
func New() (*backends.Registry, error) {
	return backends.NewRegistry(
		digitalocean.New(digitalocean.Options{}),
		hetzner.New(hetzner.Options{}),
		proxmox.New(proxmox.Options{}),
	)
}
