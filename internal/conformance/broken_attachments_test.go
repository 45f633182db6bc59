// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Each backend breaks what is said of volumes and machines in one way.
var brokenAttachments = map[string]brokenOcean{
	"accepts to attach volumes and doesn't": {
		breaking: breakDisks(func(_ backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{attach: func(context.Context, backends.Volume, string) error { return nil }}
		}),
		fails: []string{"attach/makes", "attach/again"},
	},
	"lists show no attachments": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{lists: func(ctx context.Context, f backends.Filter) ([]backends.Volume, error) {
				found, err := backends.ListAll(ctx, real.List, f)
				for i := range found {
					found[i].Machines = nil
				}
				return found, err
			}}
		}),
		fails: []string{"attach/makes"},
	},
	"reboots to attach": {
		breaking: func(h *hookedOcean) {
			h.disks = func(_ backends.VolumeStore, blocks backends.Volumes) diskHooks {
				return diskHooks{attach: func(ctx context.Context, v backends.Volume, machine string) error {
					m := backends.Machine{ID: machine}
					return errors.Join(blocks.Attach(ctx, v, machine), h.Power(ctx, m, backends.PowerOff))
				}}
			}
		},
		fails: []string{"attach/makes"},
	},
	"fails to attach what is attached": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{attach: func(ctx context.Context, v backends.Volume, machine string) error {
				if now, err := real.Get(ctx, v.ID); err == nil && now.AttachedTo(machine) {
					return backends.Errorf(backends.InvalidState, "It is attached already.")
				}
				return blocks.Attach(ctx, v, machine)
			}}
		}),
		fails: []string{"attach/again"},
	},
	"fails to detach what is detached": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{detach: func(ctx context.Context, v backends.Volume, machine string) error {
				if now, err := real.Get(ctx, v.ID); err == nil && !now.AttachedTo(machine) {
					return backends.Errorf(backends.InvalidState, "It isn't attached.")
				}
				return blocks.Detach(ctx, v, machine)
			}}
		}),
		fails: []string{"attach/again"},
	},
	"moves a volume that is to be attached elsewhere": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{attach: func(ctx context.Context, v backends.Volume, machine string) error {
				return errors.Join(detachAll(ctx, real, blocks, v.ID), blocks.Attach(ctx, v, machine))
			}}
		}),
		fails: []string{"attach/elsewhere"},
	},
	"detaches from whatever has it": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{detach: func(ctx context.Context, v backends.Volume, _ string) error {
				return detachAll(ctx, real, blocks, v.ID)
			}}
		}),
		fails: []string{"attach/elsewhere"},
	},
	"detaches to delete": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{delete: func(ctx context.Context, v backends.Volume) error {
				return errors.Join(detachAll(ctx, real, blocks, v.ID), real.Delete(ctx, v))
			}}
		}),
		fails: []string{"attach/delete"},
	},
	"detaches to grow": {
		breaking: breakDisks(func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
			return diskHooks{resize: func(ctx context.Context, v backends.Volume, gib int64) error {
				return errors.Join(detachAll(ctx, real, blocks, v.ID), real.Resize(ctx, v, gib))
			}}
		}),
		fails: []string{"attach/resize"},
	},
	"shows no device": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Device = "" }}
		}),
		fails: []string{"attach/device"},
	},
	"derives one device for all": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{
				shows:  func(v *backends.Volume) { v.Device = "/dev/sda" },
				device: func(string) string { return "/dev/sda" },
			}
		}),
		fails: []string{"attach/device"},
	},
	"deletes all volumes with their machine": {
		breaking: func(h *hookedOcean) {
			h.deletes = func(ctx context.Context, m backends.Machine) error {
				with, err := attachedTo(ctx, h, m)
				if err != nil || len(with) == 0 {
					return errors.Join(err, h.oceanClient.DeleteMachine(ctx, m))
				}
				return h.oceanClient.DeleteMachineWith(ctx, m, with)
			}
			h.deleteWith = func(ctx context.Context, m backends.Machine, _ []backends.Volume) error {
				with, err := attachedTo(ctx, h, m)
				return errors.Join(err, h.oceanClient.DeleteMachineWith(ctx, m, with))
			}
		},
		fails: []string{"going/after", "going/with", "going/selects"},
	},
	"deletes no volume with its machine": {
		breaking: func(h *hookedOcean) {
			h.deleteWith = func(ctx context.Context, m backends.Machine, _ []backends.Volume) error {
				return h.oceanClient.DeleteMachine(ctx, m)
			}
		},
		fails: []string{"going/selects"},
	},
	"tidies up what is in use": {
		breaking: func(h *hookedOcean) {
			h.tidies = func(ctx context.Context, marks backends.Marks) error {
				found, err := h.FindMachines(ctx, marks.Key)
				for _, m := range found {
					_, markErr := h.MarkMachine(ctx, m, backends.Marks{})
					err = errors.Join(err, markErr)
				}
				return err
			}
		},
		fails: []string{"tidy/keeps"},
	},
	"can't tidy up twice": {
		breaking: func(h *hookedOcean) {
			var mu sync.Mutex
			var done []string
			h.tidies = func(ctx context.Context, marks backends.Marks) error {
				mu.Lock()
				defer mu.Unlock()
				if slices.Contains(done, marks.Key) {
					return backends.Errorf(backends.NotFound, "There is no such tag.")
				}
				done = append(done, marks.Key)
				return h.oceanClient.Tidy(ctx, marks)
			}
		},
		fails: []string{"tidy/keeps"},
	},
}

// detachAll detaches a volume from all machines and waits for it.
func detachAll(ctx context.Context, store backends.VolumeStore, blocks backends.Volumes, id string) error {
	for {
		v, err := store.Get(ctx, id)
		if err != nil || len(v.Machines) == 0 || blocks == nil {
			return err
		}
		for _, m := range v.Machines {
			if err := blocks.Detach(ctx, v, m); err != nil {
				return err
			}
		}
		if err := backends.Sleep(ctx, backends.Scale(pause)); err != nil {
			return err
		}
	}
}

// attachedTo are the volumes that a machine has.
func attachedTo(ctx context.Context, h *hookedOcean, m backends.Machine) ([]backends.Volume, error) {
	all, err := backends.ListAll(ctx, h.oceanClient.Volumes().List, backends.Filter{})
	return slices.DeleteFunc(all, func(v backends.Volume) bool { return !v.AttachedTo(m.ID) }), err
}
