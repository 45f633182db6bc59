// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulate

import (
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// clouds are the emulators of the binary, in the order in which they are shown.
var clouds = []emulator.Cloud{
	hetzner.Cloud(),
	digitalocean.Cloud(),
	proxmox.Cloud(),
}

// defaultSnapshotInterval is that of the one cloud which has such a limit.
const defaultSnapshotInterval = digitalocean.DefaultSnapshotInterval
