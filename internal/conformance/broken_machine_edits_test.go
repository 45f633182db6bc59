// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"maps"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// edited is a client whose edits and resizes are hooked.
type edited struct {
	*hooked
	edit   func(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (backends.Machine, error)
	shown  func(to backends.MachineSpec) backends.MachineSpec
	resize func(ctx context.Context, m backends.Machine, to backends.MachineSpec, off backends.PowerDown) (backends.Machine, error)
}

func (e *edited) Edit(ctx context.Context, m backends.Machine, from, to backends.MachineSpec, off backends.PowerDown) (backends.Machine, error) {
	if e.edit != nil {
		return e.edit(ctx, m, from, to)
	}
	return e.hooked.Edit(ctx, m, from, to, off)
}

func (e *edited) Shown(ctx context.Context, m backends.Machine, to backends.MachineSpec) (backends.MachineSpec, error) {
	if e.shown != nil {
		return e.shown(to), nil
	}
	return e.hooked.Shown(ctx, m, to)
}

func (e *edited) Resize(ctx context.Context, m backends.Machine, to backends.MachineSpec, grow bool, off backends.PowerDown) (
	backends.Machine, error) {
	if e.resize != nil {
		return e.resize(ctx, m, to, off)
	}
	return e.hooked.Resize(ctx, m, to, grow, off)
}

// breaksEdits makes a breaking of what replaces edits.
func breaksEdits(how func(c client, e *edited)) breaking {
	return func(c client, cloud emulatedCloud) backends.Backend {
		e := &edited{hooked: &hooked{client: c, cloud: cloud}}
		how(c, e)
		return e
	}
}

// brokenBackend is one way to break the contract; see broken.
type brokenBackend struct {
	breaking breaking
	fails    []string
	leaves   bool
}

// allBroken are all backends that break the contract of machines.
func allBroken() map[string]brokenBackend {
	out := maps.Clone(broken)
	maps.Copy(out, brokenMachineEdits)
	return out
}

func noOff(context.Context) error { return nil }

// Each backend breaks the contract of a machine's edits in one way; see broken.
var brokenMachineEdits = map[string]brokenBackend{
	"gives a machine the new key and not the name": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.edit = func(ctx context.Context, m backends.Machine, _, to backends.MachineSpec) (backends.Machine, error) {
				return c.MarkMachine(ctx, m, to.Marks)
			}
		}),
		fails: []string{"edit/rename", "edit/relabel"},
	},
	"gives a machine the new name and not the key": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.edit = func(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (backends.Machine, error) {
				to.Marks = m.Marks
				return c.Edit(ctx, m, from, to, noOff)
			}
		}),
		fails: []string{"edit/rename"},
	},
	"takes off labels of others": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.edit = func(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (backends.Machine, error) {
				if to.Labels != nil {
					from.Labels = maps.Clone(m.Labels)
				}
				return c.Edit(ctx, m, from, to, noOff)
			}
		}),
		fails: []string{"edit/relabel"},
	},
	"takes off labels that are left out": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.edit = func(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (backends.Machine, error) {
				if to.Labels == nil {
					to.Labels = map[string]string{}
				}
				return c.Edit(ctx, m, from, to, noOff)
			}
		}),
		fails: []string{"edit/relabel"},
	},
	"switches a machine off for its name": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.edit = func(ctx context.Context, m backends.Machine, from, to backends.MachineSpec) (backends.Machine, error) {
				if err := c.Power(ctx, m, backends.PowerOff); err != nil {
					return m, err
				}
				return c.Edit(ctx, m, from, to, noOff)
			}
		}),
		fails: []string{"edit/rename"},
	},
	"shows every machine to be as wished": {
		breaking: breaksEdits(func(_ client, e *edited) {
			e.shown = func(to backends.MachineSpec) backends.MachineSpec { return to }
		}),
		fails: []string{"edit/shown"},
	},
	"says that it resizes, and doesn't": {
		breaking: breaksEdits(func(_ client, e *edited) {
			e.resize = func(_ context.Context, m backends.Machine, _ backends.MachineSpec, _ backends.PowerDown) (backends.Machine, error) {
				return m, nil
			}
		}),
		fails: []string{"resize/keeps"},
	},
	"restarts a machine for the offer that it has": {
		breaking: breaksEdits(func(c client, e *edited) {
			e.resize = func(ctx context.Context, m backends.Machine, to backends.MachineSpec, off backends.PowerDown) (backends.Machine, error) {
				if err := off(ctx); err != nil {
					return m, err
				}
				return c.Resize(ctx, m, to, false, noOff)
			}
		}),
		fails: []string{"resize/keeps"},
	},
}
