// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"errors"
	"sync"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// breakDisks makes a breaking of hooks on both kinds of volumes.
func breakDisks(hooks func(real backends.VolumeStore, blocks backends.Volumes) diskHooks) func(*hookedOcean) {
	return func(h *hookedOcean) { h.disks = hooks }
}

// onBoth are the cases of block volumes and of shared ones.
func onBoth(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "volume/"+name, "share/"+name)
	}
	return out
}

// Each backend breaks the contract of volumes in one way; see broken.
var brokenVolumes = map[string]brokenOcean{
	"refuses every volume": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{form: func(backends.VolumeSpec) []*backends.Error {
				return []*backends.Error{backends.Errorf(backends.InvalidInput, "No.").At("name")}
			}}
		}),
		fails: onBoth("check", "size"),
	},
	"refuses a size that isn't known yet": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{form: func(spec backends.VolumeSpec) []*backends.Error {
				spec.Unknown = nil
				return real.CheckForm(spec)
			}}
		}),
		fails: onBoth("check"),
	},
	"refuses a size without the reason": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{form: func(spec backends.VolumeSpec) []*backends.Error {
				issues := real.CheckForm(spec)
				for _, e := range issues {
					e.Reason = ""
				}
				return issues
			}}
		}),
		fails: onBoth("size"),
	},
	"makes volumes under another claim": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
				spec.Marks.Claim = "00000000000000000000000000"
				return real.Make(ctx, spec)
			}}
		}),
		// Where marks can be written over, the next create takes over what it finds.
		fails: append(onBoth("makes", "marks-at-birth", "retry"), "share/resumed"),
	},
	"shows volumes in another region": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Region = "elsewhere" }}
		}),
		fails: onBoth("makes"),
	},
	"shows no mount": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Mount = nil }}
		}),
		fails: []string{"share/makes"},
	},
	"never shows a volume ready": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.State = backends.StatePending }}
		}),
		fails: onBoth("makes", "resumed"),
	},
	"never shows a volume complete": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Marks.Complete = false }}
		}),
		fails: onBoth("makes", "conflict"),
	},
	"shows no digest": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Marks.Digest = "" }}
		}),
		fails: onBoth("makes", "adopt", "adopt-differs"),
	},
	"lists no volumes": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{lists: func(context.Context, backends.Filter) ([]backends.Volume, error) { return nil, nil }}
		}),
		fails: onBoth("makes", "marks-at-birth", "retry", "concurrent", "conflict", "adopt", "lists"),
	},
	"lists ignore the pool of volumes": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{lists: func(ctx context.Context, f backends.Filter) ([]backends.Volume, error) {
				return backends.ListAll(ctx, real.List, backends.Filter{Account: f.Account})
			}}
		}),
		fails: onBoth("lists"),
	},
	"lists ignore the account of volumes": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{lists: func(ctx context.Context, f backends.Filter) ([]backends.Volume, error) {
				return backends.ListAll(ctx, real.List, backends.Filter{Pool: f.Pool})
			}}
		}),
		fails: onBoth("lists"),
	},
	"answers the first volume to every make": {
		breaking: func(h *hookedOcean) {
			var mu sync.Mutex
			first := map[backends.VolumeKind]backends.Volume{}
			h.disks = func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
				return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
					mu.Lock()
					defer mu.Unlock()
					if v, ok := first[spec.Kind]; ok {
						return v, nil
					}
					v, err := real.Make(ctx, spec)
					first[spec.Kind] = v
					return v, err
				}}
			}
		},
		fails: onBoth("name-taken"),
	},
	"says of a taken name only no": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
				v, err := real.Make(ctx, spec)
				if _, taken := errors.AsType[*backends.NameTaken](err); taken {
					err = backends.Errorf(backends.ProviderError, "No.")
				}
				return v, err
			}}
		}),
		fails: []string{"volume/name-taken"},
	},
	"finds all volumes by any name": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{named: func(ctx context.Context, _ string) ([]backends.Volume, error) {
				return backends.ListAll(ctx, real.List, backends.Filter{})
			}}
		}),
		fails: onBoth("named"),
	},
	"finds no volume by its name": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{named: func(context.Context, string) ([]backends.Volume, error) { return nil, nil }}
		}),
		fails: onBoth("named"),
	},
	"accepts to grow volumes and doesn't": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{resize: func(context.Context, backends.Volume, int64) error { return nil }}
		}),
		fails: append(onBoth("resize"), "attach/resize", "snapshot/restores"),
	},
	"fails to grow what is as large": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{resize: func(ctx context.Context, v backends.Volume, gib int64) error {
				if v.SizeGiB >= gib {
					return backends.Errorf(backends.ProviderError, "It is as large.")
				}
				return real.Resize(ctx, v, gib)
			}}
		}),
		fails: onBoth("resize"),
	},
	"ignores deletes of volumes": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{delete: func(context.Context, backends.Volume) error { return nil }}
		}),
		fails:  onBoth("delete", "missing"),
		leaves: true,
	},
	"a second delete of a volume fails": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{delete: func(ctx context.Context, v backends.Volume) error {
				err := real.Delete(ctx, v)
				if backends.HasCode(err, backends.NotFound) {
					err = backends.Errorf(backends.ProviderError, "There is no such volume.")
				}
				return err
			}}
		}),
		fails: onBoth("delete"),
	},
	"says nothing when a volume is missing": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{gets: func(ctx context.Context, id string) (backends.Volume, error) {
				v, err := real.Get(ctx, id)
				if backends.HasCode(err, backends.NotFound) {
					return backends.Volume{ID: id, State: backends.StateDeleted}, nil
				}
				return v, err
			}}
		}),
		fails: onBoth("delete", "missing"),
	},
	// What it makes is claimed by whoever looks next.
	"shows no claim": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Marks.Claim = "" }}
		}),
		fails: onBoth("claim", "marks-at-birth"),
	},
	"answers marks of volumes that it didn't write": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{marks: func(ctx context.Context, v backends.Volume, marks backends.Marks) (backends.Volume, error) {
				v, err := real.Get(ctx, v.ID)
				v.Marks = marks
				return v, err
			}}
		}),
		fails: []string{"volume/makes", "volume/adopt", "volume/marks"},
	},
	"keeps volumes going with their machines": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{marks: func(ctx context.Context, v backends.Volume, marks backends.Marks) (backends.Volume, error) {
				marks.GoesWithMachine = marks.GoesWithMachine || v.Marks.GoesWithMachine
				return real.Mark(ctx, v, marks)
			}}
		}),
		fails: []string{"volume/marks"},
	},
	"forgets which volumes go with their machines": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) { v.Marks.GoesWithMachine = false }}
		}),
		fails: []string{"volume/marks", "volume/labels", "going/after", "going/with"},
	},
	"drops labels of volumes": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
				spec.Labels = nil
				return real.Make(ctx, spec)
			}}
		}),
		fails: []string{"volume/labels"},
	},
	"marks volumes that are gone": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{marks: func(ctx context.Context, v backends.Volume, marks backends.Marks) (backends.Volume, error) {
				out, err := real.Mark(ctx, v, marks)
				if backends.HasCode(err, backends.NotFound) {
					return v, nil
				}
				return out, err
			}}
		}),
		fails: []string{"volume/mark-missing"},
	},
	"shows nothing of a share's pool": {
		breaking: breakDisks(func(backends.VolumeStore, backends.Volumes) diskHooks {
			return diskHooks{shows: func(v *backends.Volume) {
				if v.Marks.Fixed {
					v.Marks.Pool = "pool_"
				}
			}}
		}),
		fails: []string{"share/marks", "share/makes"},
	},
	"deletes snapshots with their shares": {
		breaking: func(h *hookedOcean) {
			h.disks = func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
				if blocks != nil {
					return diskHooks{}
				}
				return diskHooks{delete: func(ctx context.Context, v backends.Volume) error {
					return errors.Join(dropSnapshots(ctx, h.oceanClient.SharedSnapshots(), v.ID), real.Delete(ctx, v))
				}}
			}
		},
		fails: []string{"share/snapshots"},
	},
	"deletes snapshots with their volumes": {
		breaking: func(h *hookedOcean) {
			h.disks = func(real backends.VolumeStore, blocks backends.Volumes) diskHooks {
				if blocks == nil {
					return diskHooks{}
				}
				return diskHooks{delete: func(ctx context.Context, v backends.Volume) error {
					return errors.Join(dropSnapshots(ctx, h.oceanClient.Snapshots(), v.ID), real.Delete(ctx, v))
				}}
			}
		},
		fails: []string{"snapshot/outlives", "snapshot/restores"},
	},
	"makes empty shares from snapshots": {
		breaking: breakDisks(func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
			return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
				spec.Restores, spec.Snapshot = false, ""
				return real.Make(ctx, spec)
			}}
		}),
		fails: []string{"share-snapshot/no-restore"},
	},
}

func dropSnapshots(ctx context.Context, store backends.Snapshots, volume string) error {
	found, err := store.OfVolume(ctx, volume)
	for _, s := range found {
		err = errors.Join(err, store.Delete(ctx, s))
	}
	return err
}
