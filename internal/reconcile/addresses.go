// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Addresses are a machine's: those that its wish fixes, else what the cloud shows.
// Where only the guest knows them it is asked once, while it runs; a guest that
// doesn't answer keeps those recorded.
func (a *Account) Addresses(ctx context.Context, m backends.Machine, spec backends.MachineSpec,
	recorded []backends.Address) []backends.Address {
	addresser, ok := a.Backend.(backends.Addresser)
	if !ok {
		return m.Addresses
	}
	if planned := addresser.PlannedAddresses(spec); len(planned) > 0 {
		return planned
	}
	if m.State != backends.StateRunning {
		return recorded
	}
	found, err := addresser.ReadAddresses(ctx, m)
	if err != nil || len(found) == 0 {
		return recorded
	}
	return found
}

// PlannedAddresses are the addresses that a wish fixes; nil where it fixes none.
func (a *Account) PlannedAddresses(spec backends.MachineSpec) []backends.Address {
	if addresser, ok := a.Backend.(backends.Addresser); ok {
		return addresser.PlannedAddresses(spec)
	}
	return nil
}
