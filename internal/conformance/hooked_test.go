// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	backend "github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// client is what the broken backends are built on; short, since each embeds it.
type client = *backend.Client

// emulatedCloud is the emulator behind a client.
type emulatedCloud = *emulated.Service

// hooked is a client whose methods can be replaced, one by one.
type hooked struct {
	client
	cloud     *emulated.Service
	prove     func(context.Context) error
	offers    func([]backends.Offer) []backends.Offer
	check     func(backends.MachineSpec) ([]*backends.Error, bool)
	makes     func(context.Context, backends.MachineSpec) (backends.Machine, error)
	finds     func(context.Context, string) ([]backends.Machine, error)
	gets      func(context.Context, string) (backends.Machine, error)
	marks     func(context.Context, backends.Machine, backends.Marks) (backends.Machine, error)
	deletes   func(context.Context, backends.Machine) error
	lists     func(context.Context, backends.Filter) ([]backends.Machine, error)
	power     func(context.Context, backends.Machine, backends.PowerAction) error
	protect   func(context.Context, backends.Machine, bool) error
	reinstall func(context.Context, backends.Machine, backends.MachineSpec) error
}

func (h *hooked) Prove(ctx context.Context) error {
	if h.prove != nil {
		return h.prove(ctx)
	}
	return h.client.Prove(ctx)
}

func (h *hooked) Offers(ctx context.Context, q backends.OfferQuery) ([]backends.Offer, error) {
	offers, err := h.client.Offers(ctx, q)
	if h.offers != nil {
		offers = h.offers(slices.Clone(offers))
	}
	return offers, err
}

func (h *hooked) CheckForm(spec backends.MachineSpec) []*backends.Error {
	return h.client.CheckForm(spec)
}

func (h *hooked) CheckMachine(ctx context.Context, spec backends.MachineSpec) (backends.Resolved, []*backends.Error, error) {
	resolved, issues, err := h.client.CheckMachine(ctx, spec)
	if h.check != nil {
		if other, ok := h.check(spec); ok {
			issues = other
		}
	}
	return resolved, issues, err
}

func (h *hooked) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	if h.makes != nil {
		return h.makes(ctx, spec)
	}
	return h.client.MakeMachine(ctx, spec)
}

func (h *hooked) FindMachines(ctx context.Context, key string) ([]backends.Machine, error) {
	if h.finds != nil {
		return h.finds(ctx, key)
	}
	return h.client.FindMachines(ctx, key)
}

func (h *hooked) GetMachine(ctx context.Context, id string) (backends.Machine, error) {
	if h.gets != nil {
		return h.gets(ctx, id)
	}
	return h.client.GetMachine(ctx, id)
}

func (h *hooked) MarkMachine(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
	if h.marks != nil {
		return h.marks(ctx, m, marks)
	}
	return h.client.MarkMachine(ctx, m, marks)
}

func (h *hooked) DeleteMachine(ctx context.Context, m backends.Machine) error {
	if h.deletes != nil {
		return h.deletes(ctx, m)
	}
	return h.client.DeleteMachine(ctx, m)
}

func (h *hooked) ListMachines(ctx context.Context, f backends.Filter) (backends.Listing[backends.Machine], error) {
	if h.lists == nil {
		return h.client.ListMachines(ctx, f)
	}
	found, err := h.lists(ctx, f)
	return backends.Whole(found), err
}

func (h *hooked) Power(ctx context.Context, m backends.Machine, action backends.PowerAction) error {
	if h.power != nil {
		return h.power(ctx, m, action)
	}
	return h.client.Power(ctx, m, action)
}

func (h *hooked) Protect(ctx context.Context, m backends.Machine, on bool) error {
	if h.protect != nil {
		return h.protect(ctx, m, on)
	}
	return h.client.Protect(ctx, m, on)
}

func (h *hooked) Reinstall(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
	if h.reinstall != nil {
		return h.reinstall(ctx, m, spec)
	}
	return h.client.Reinstall(ctx, m, spec)
}

// breaks makes a breaking of a function that replaces methods.
func breaks(how func(c client, h *hooked)) breaking {
	return func(c *backend.Client, cloud *emulated.Service) backends.Backend {
		h := &hooked{client: c, cloud: cloud}
		how(c, h)
		return h
	}
}

// completed are marks with the completion.
func completed(marks backends.Marks) backends.Marks {
	marks.Complete = true
	return marks
}

var notFound = backends.Errorf(backends.NotFound, "It is gone.")

// memory remembers machines by their ids.
type memory struct {
	mu       sync.Mutex
	machines map[string]backends.Machine
}

func (s *memory) put(m backends.Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machines == nil {
		s.machines = map[string]backends.Machine{}
	}
	s.machines[m.ID] = m
}

func (s *memory) get(id string) (backends.Machine, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.machines[id]
	return m, ok
}

// allServers are all machines of the project, managed or not.
func (h *hooked) allServers(ctx context.Context) ([]backends.Machine, error) {
	var out []backends.Machine
	for _, s := range h.cloud.Servers() {
		m, err := h.client.GetMachine(ctx, strconv.FormatInt(s.ID, 10))
		if backends.HasCode(err, backends.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
