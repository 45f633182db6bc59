// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"slices"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Each backend breaks the contract in one way, and the cases named must notice.
// leaves: what is broken is deleting itself, so cleaning up must say that it
// couldn't.
var broken = map[string]brokenBackend{
	"accepts any credential": {
		breaking: breaks(func(_ client, h *hooked) { h.prove = func(context.Context) error { return nil } }),
		fails:    []string{"credentials/wrong"},
	},
	"refuses good credentials": {
		breaking: breaks(func(_ client, h *hooked) { h.prove = func(context.Context) error { return notFound } }),
		fails:    []string{"credentials/good"},
	},
	"offers a price without a currency": {
		breaking: breaks(func(_ client, h *hooked) {
			h.offers = func(o []backends.Offer) []backends.Offer {
				if len(o) > 0 {
					o[0].Currency = ""
				}
				return o
			}
		}),
		fails: []string{"offers/well-formed"},
	},
	"offers everything twice": {
		breaking: breaks(func(_ client, h *hooked) {
			h.offers = func(o []backends.Offer) []backends.Offer { return append(o, o...) }
		}),
		fails: []string{"offers/well-formed"},
	},
	"offers ignore the query": {
		breaking: breaks(func(c client, h *hooked) {
			h.offers = func([]backends.Offer) []backends.Offer {
				all, _ := c.Offers(context.Background(), backends.OfferQuery{})
				return all
			}
		}),
		fails: []string{"offers/impossible", "offers/subject"},
	},
	"offers lack the subject's": {
		breaking: breaks(func(_ client, h *hooked) {
			h.offers = func(o []backends.Offer) []backends.Offer {
				return slices.DeleteFunc(o, func(o backends.Offer) bool { return o.ID == "cx23" })
			}
		}),
		fails: []string{"offers/subject"},
	},
	"checks nothing": {
		breaking: breaks(func(_ client, h *hooked) {
			h.check = func(backends.MachineSpec) ([]*backends.Error, bool) { return nil, true }
		}),
		fails: []string{"check/offer", "check/image", "check/all"},
	},
	"refuses everything": {
		breaking: breaks(func(_ client, h *hooked) {
			h.check = func(backends.MachineSpec) ([]*backends.Error, bool) {
				return []*backends.Error{backends.Errorf(backends.InvalidInput, "No.").At("offer")}, true
			}
		}),
		fails: []string{"check/subject"},
	},
	"refuses what isn't known yet": {
		breaking: breaks(func(_ client, h *hooked) {
			h.check = func(spec backends.MachineSpec) ([]*backends.Error, bool) {
				if spec.Offer == "cx23" && spec.Image == "debian-13" {
					return nil, false
				}
				return []*backends.Error{backends.Errorf(backends.InvalidInput, "No.").At("offer")}, true
			}
		}),
		fails: []string{"check/unknown", "check/image", "check/all"},
	},
	"reports one issue at a time": {
		breaking: breaks(func(_ client, h *hooked) {
			h.check = func(spec backends.MachineSpec) ([]*backends.Error, bool) {
				if spec.Offer != "no-such-offer" {
					return nil, false
				}
				return []*backends.Error{backends.Errorf(backends.InvalidInput, "No.").At("offer")}, true
			}
		}),
		fails: []string{"check/all"},
	},
	"loses marks at birth": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				spec.Marks = backends.Marks{}
				return c.MakeMachine(ctx, spec)
			}
		}),
		fails: []string{"create/makes", "create/marks-at-birth", "create/resumed", "get/follows"},
	},
	"loses the digest": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				spec.Marks.Digest = ""
				return c.MakeMachine(ctx, spec)
			}
		}),
		fails: []string{"create/makes", "create/marks-at-birth", "create/adopt-differs"},
	},
	"makes machines complete": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if err != nil {
					return m, err
				}
				spec.Marks.Complete = true
				return c.MarkMachine(ctx, m, spec.Marks)
			}
		}),
		fails: []string{"create/marks-at-birth"},
	},
	// The rules above the backend delete the second one, which carries the same claim.
	"makes two machines": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if err != nil {
					return m, err
				}
				spec.Name += "-too"
				_, err = c.MakeMachine(ctx, spec)
				return m, err
			}
		}),
		fails: []string{"create/marks-at-birth"},
	},
	// A second machine that is complete and has another claim is nobody's to delete.
	"makes a stranger's machine beside": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if err != nil {
					return m, err
				}
				spec.Name += "-x"
				spec.Marks.Claim = "00000000000000000000000000"
				beside, err := c.MakeMachine(ctx, spec)
				if err != nil {
					return m, err
				}
				_, err = c.MarkMachine(ctx, beside, completed(spec.Marks))
				return m, err
			}
		}),
		fails: []string{"create/makes", "create/retry", "create/concurrent", "create/resumed"},
	},
	// A retry that can't see the first machine makes another, under a name of its own.
	"makes another machine on retry": {
		breaking: breaks(func(c client, h *hooked) {
			var mu sync.Mutex
			names := map[string]bool{}
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				mu.Lock()
				for names[spec.Name] {
					spec.Name += "-x"
				}
				names[spec.Name] = true
				mu.Unlock()
				return c.MakeMachine(ctx, spec)
			}
			h.lists = func(context.Context, backends.Filter) ([]backends.Machine, error) { return nil, nil }
		}),
		fails: []string{"create/retry", "create/resumed", "create/conflict", "create/adopt"},
	},
	"takes a stranger's machine for its own": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if taken, ok := err.(*backends.NameTaken); ok { //nolint:errorlint // The backend returns it as it is.
					return c.GetMachine(ctx, taken.Holder.ID)
				}
				return m, err
			}
		}),
		fails: []string{"create/name-taken"},
	},
	"ambiguous about what it refused": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if e := backends.AsError(err); e != nil {
					lost := *e
					lost.Ambiguous = true
					err = &lost
				}
				return m, err
			}
		}),
		fails: []string{"create/unknown-offer"},
	},
	"finds nothing by key": {
		breaking: breaks(func(_ client, h *hooked) {
			h.finds = func(context.Context, string) ([]backends.Machine, error) { return nil, nil }
		}),
		fails: []string{"create/makes", "create/retry", "create/adopt"},
	},
	"finds everything by any key": {
		breaking: breaks(func(c client, h *hooked) {
			h.finds = func(ctx context.Context, _ string) ([]backends.Machine, error) { return h.allServers(ctx) }
		}),
		fails: []string{"find/absent"},
	},
	"finds deleted machines by their keys": {
		breaking: breaks(func(c client, h *hooked) {
			var mu sync.Mutex
			var made []backends.Machine
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				m, err := c.MakeMachine(ctx, spec)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					made = append(made, m)
				}
				return m, err
			}
			h.finds = func(_ context.Context, key string) ([]backends.Machine, error) {
				mu.Lock()
				defer mu.Unlock()
				return slices.DeleteFunc(slices.Clone(made), func(m backends.Machine) bool { return m.Marks.Key != key }), nil
			}
		}),
		fails: []string{"delete/removes", "delete/anew"},
	},
	"says nothing when a machine is missing": {
		breaking: breaks(func(c client, h *hooked) {
			h.gets = func(ctx context.Context, id string) (backends.Machine, error) {
				m, err := c.GetMachine(ctx, id)
				if backends.HasCode(err, backends.NotFound) {
					return backends.Machine{ID: id, State: backends.StateDeleted}, nil
				}
				return m, err
			}
		}),
		fails: []string{"get/missing", "delete/removes"},
	},
	"another error when a machine is missing": {
		breaking: breaks(func(c client, h *hooked) {
			h.gets = func(ctx context.Context, id string) (backends.Machine, error) {
				m, err := c.GetMachine(ctx, id)
				if backends.HasCode(err, backends.NotFound) {
					err = backends.Errorf(backends.ProviderError, "Not here.")
				}
				return m, err
			}
		}),
		fails:  []string{"get/missing", "delete/removes"},
		leaves: true,
	},
	"ignores deletes": {
		breaking: breaks(func(_ client, h *hooked) {
			h.deletes = func(context.Context, backends.Machine) error { return nil }
		}),
		fails:  []string{"delete/removes", "delete/again"},
		leaves: true,
	},
	"keeps showing a deleted machine": {
		breaking: breaks(func(c client, h *hooked) {
			var seen memory
			h.gets = func(ctx context.Context, id string) (backends.Machine, error) {
				m, err := c.GetMachine(ctx, id)
				if err == nil {
					seen.put(m)
				} else if old, ok := seen.get(id); ok && backends.HasCode(err, backends.NotFound) {
					return old, nil
				}
				return m, err
			}
			h.deletes = func(ctx context.Context, m backends.Machine) error {
				seen.put(m)
				return c.DeleteMachine(ctx, m)
			}
		}),
		fails:  []string{"delete/removes", "get/missing"},
		leaves: true,
	},
	"a second delete fails": {
		breaking: breaks(func(c client, h *hooked) {
			h.deletes = func(ctx context.Context, m backends.Machine) error {
				err := c.DeleteMachine(ctx, m)
				if backends.HasCode(err, backends.NotFound) {
					err = backends.Errorf(backends.ProviderError, "There is no such machine.")
				}
				return err
			}
		}),
		fails: []string{"delete/again"},
	},
	"drops foreign labels": {
		breaking: breaks(func(c client, h *hooked) {
			h.marks = func(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
				m.Labels = nil
				return c.MarkMachine(ctx, m, marks)
			}
		}),
		fails: []string{"mark/labels"},
	},
	"drops labels at birth": {
		breaking: breaks(func(c client, h *hooked) {
			h.makes = func(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
				spec.Labels = nil
				return c.MakeMachine(ctx, spec)
			}
		}),
		fails: []string{"mark/labels"},
	},
	"never drops a mark": {
		breaking: breaks(func(c client, h *hooked) {
			h.marks = func(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
				marks.Managed, marks.Complete = true, marks.Complete || m.Marks.Complete
				return c.MarkMachine(ctx, m, marks)
			}
		}),
		fails: []string{"mark/replaces", "list/managed"},
	},
	"answers marks it didn't write": {
		breaking: breaks(func(c client, h *hooked) {
			h.marks = func(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
				m, err := c.GetMachine(ctx, m.ID)
				m.Marks = marks
				return m, err
			}
		}),
		fails: []string{"create/makes", "mark/replaces", "claim/lost", "create/adopt"},
	},
	"marks what is gone": {
		breaking: breaks(func(c client, h *hooked) {
			h.marks = func(ctx context.Context, m backends.Machine, marks backends.Marks) (backends.Machine, error) {
				out, err := c.MarkMachine(ctx, m, marks)
				if backends.HasCode(err, backends.NotFound) {
					return m, nil
				}
				return out, err
			}
		}),
		fails: []string{"mark/missing"},
	},
	"lists unmanaged machines": {
		breaking: breaks(func(c client, h *hooked) {
			h.lists = func(ctx context.Context, f backends.Filter) ([]backends.Machine, error) {
				managed, err := backends.ListAll(ctx, c.ListMachines, f)
				if err != nil {
					return nil, err
				}
				all, err := h.allServers(ctx)
				return append(managed, slices.DeleteFunc(all, func(m backends.Machine) bool { return m.Marks.Managed })...), err
			}
		}),
		fails: []string{"list/managed"},
	},
	"lists ignore the pool": {
		breaking: breaks(func(c client, h *hooked) {
			h.lists = func(ctx context.Context, f backends.Filter) ([]backends.Machine, error) {
				return backends.ListAll(ctx, c.ListMachines, backends.Filter{Account: f.Account})
			}
		}),
		fails: []string{"list/filters"},
	},
	"lists ignore the account": {
		breaking: breaks(func(c client, h *hooked) {
			h.lists = func(ctx context.Context, f backends.Filter) ([]backends.Machine, error) {
				return backends.ListAll(ctx, c.ListMachines, backends.Filter{Pool: f.Pool})
			}
		}),
		fails: []string{"list/filters"},
	},
	"lists nothing": {
		breaking: breaks(func(_ client, h *hooked) {
			h.lists = func(context.Context, backends.Filter) ([]backends.Machine, error) { return nil, nil }
		}),
		fails: []string{"list/filters"},
	},
	"lists ignore what is waited for": {
		breaking: breaks(func(c client, h *hooked) {
			h.lists = func(ctx context.Context, f backends.Filter) ([]backends.Machine, error) {
				return backends.ListAll(ctx, c.ListMachines, backends.Filter{Account: f.Account, Pool: f.Pool})
			}
		}),
		fails: []string{"list/phases"},
	},
	"accepts power actions and does nothing": {
		breaking: breaks(func(_ client, h *hooked) {
			h.power = func(context.Context, backends.Machine, backends.PowerAction) error { return nil }
		}),
		fails: []string{"power/actions", "power/off-on"},
	},
	"reinstalls nothing and says so": {
		breaking: breaks(func(_ client, h *hooked) {
			h.reinstall = func(context.Context, backends.Machine, backends.MachineSpec) error { return notFound }
		}),
		fails: []string{"reinstall/keeps"},
	},
	"reinstalls by making the machine anew": {
		breaking: breaks(func(c client, h *hooked) {
			h.reinstall = func(ctx context.Context, m backends.Machine, spec backends.MachineSpec) error {
				if err := c.DeleteMachine(ctx, m); err != nil {
					return err
				}
				_, err := c.MakeMachine(ctx, spec)
				return err
			}
		}),
		fails: []string{"reinstall/keeps"},
	},
	"protects nothing": {
		breaking: breaks(func(_ client, h *hooked) {
			h.protect = func(context.Context, backends.Machine, bool) error { return nil }
		}),
		fails: []string{"protection/holds"},
	},
	// Cleaning up has to lift what the case left on.
	"refuses to delete protected machines without the reason": {
		breaking: breaks(func(c client, h *hooked) {
			h.deletes = func(ctx context.Context, m backends.Machine) error {
				err := c.DeleteMachine(ctx, m)
				if backends.HasReason(err, backends.ReasonProtected) {
					err = backends.Errorf(backends.ProviderError, "No.")
				}
				return err
			}
		}),
		fails: []string{"protection/holds"},
	},
	"lifts protection by itself": {
		breaking: breaks(func(c client, h *hooked) {
			h.deletes = func(ctx context.Context, m backends.Machine) error {
				if err := c.Protect(ctx, m, false); err != nil {
					return err
				}
				return c.DeleteMachine(ctx, m)
			}
		}),
		fails: []string{"protection/holds"},
	},
	"panics": {
		breaking: breaks(func(_ client, h *hooked) {
			h.power = func(context.Context, backends.Machine, backends.PowerAction) error { panic("a bug") }
		}),
		fails: []string{"power/actions", "power/off-on"},
	},
}
