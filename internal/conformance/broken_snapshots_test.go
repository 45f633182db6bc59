// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	ocean "github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
)

// pause is that of broken backends that wait for something themselves.
const pause = time.Second

// brokenOcean is a backend with all abilities that breaks the contract in one way;
// the cases named must notice. For leaves see broken.
type brokenOcean struct {
	breaking func(*hookedOcean)
	fails    []string
	leaves   bool
}

// allBrokenOceans are those of all files.
func allBrokenOceans() map[string]brokenOcean {
	out := maps.Clone(brokenVolumes)
	maps.Copy(out, brokenEdits)
	maps.Copy(out, brokenAttachments)
	maps.Copy(out, brokenSnapshots)
	return out
}

func TestBrokenVolumesFail(t *testing.T) {
	if want := len(brokenVolumes) + len(brokenEdits) + len(brokenAttachments) + len(brokenSnapshots); len(allBrokenOceans()) != want {
		t.Errorf("two of the %d broken backends have one name", want)
	}
	for name, b := range allBrokenOceans() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newOcean()
				s := oceanSubject(t, cloud, func(c *ocean.Client) backends.Backend {
					h := &hookedOcean{oceanClient: c}
					b.breaking(h)
					return h
				})
				s.Only = exactly(b.fails...)
				report := conformance.Run(t.Context(), s)
				mustFail(t, report, b.fails)
				accountFor(t, cloud, report, b.leaves)
			})
		})
	}
}

// breakSnaps makes a breaking of hooks on the snapshots of both kinds of volumes.
func breakSnaps(hooks func(real backends.Snapshots) snapHooks) func(*hookedOcean) {
	return func(h *hookedOcean) { h.snaps = hooks }
}

// onBothSnapshots are the cases of snapshots of both kinds of volumes.
func onBothSnapshots(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "snapshot/"+name, "share-snapshot/"+name)
	}
	return out
}

// Each backend breaks the contract of snapshots in one way; see broken.
var brokenSnapshots = map[string]brokenOcean{
	"makes snapshots under another claim": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{makes: func(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
				spec.Marks.Claim = "00000000000000000000000000"
				return real.Make(ctx, spec)
			}}
		}),
		fails: append(onBothSnapshots("makes", "marks-at-birth", "retry"), "share-snapshot/resumed"),
	},
	"shows snapshots of another volume": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{shows: func(s *backends.Snapshot) { s.Volume = "another" }}
		}),
		fails: onBothSnapshots("makes", "conflict", "lists"),
	},
	"forgets the name of a snapshot's volume": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{shows: func(s *backends.Snapshot) { s.Marks.Volume = "" }}
		}),
		fails: []string{"snapshot/makes", "snapshot/marks-at-birth"},
	},
	"shows snapshots without a size": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{shows: func(s *backends.Snapshot) { s.SizeGiB = 0 }}
		}),
		fails: onBothSnapshots("makes", "resumed"),
	},
	"never shows a snapshot complete": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{shows: func(s *backends.Snapshot) { s.Marks.Complete = false }}
		}),
		fails: onBothSnapshots("makes", "conflict"),
	},
	"lists no snapshots": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{lists: func(context.Context, backends.Filter) ([]backends.Snapshot, error) { return nil, nil }}
		}),
		fails: onBothSnapshots("makes", "marks-at-birth", "conflict", "lists"),
	},
	"lists ignore the pool of snapshots": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{lists: func(ctx context.Context, f backends.Filter) ([]backends.Snapshot, error) {
				return backends.ListAll(ctx, real.List, backends.Filter{Account: f.Account})
			}}
		}),
		fails: onBothSnapshots("lists"),
	},
	"has all snapshots of every volume": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{ofVolume: func(ctx context.Context, _ string) ([]backends.Snapshot, error) {
				return backends.ListAll(ctx, real.List, backends.Filter{})
			}}
		}),
		fails: onBothSnapshots("lists"),
	},
	"ignores deletes of snapshots": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{delete: func(context.Context, backends.Snapshot) error { return nil }}
		}),
		fails:  onBothSnapshots("delete", "missing"),
		leaves: true,
	},
	"a second delete of a snapshot fails": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{delete: func(ctx context.Context, s backends.Snapshot) error {
				err := real.Delete(ctx, s)
				if backends.HasCode(err, backends.NotFound) {
					err = backends.Errorf(backends.ProviderError, "There is no such snapshot.")
				}
				return err
			}}
		}),
		fails: onBothSnapshots("delete"),
	},
	"says nothing when a snapshot is missing": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{gets: func(ctx context.Context, id string) (backends.Snapshot, error) {
				s, err := real.Get(ctx, id)
				if backends.HasCode(err, backends.NotFound) {
					return backends.Snapshot{ID: id, State: backends.StateReady}, nil
				}
				return s, err
			}}
		}),
		fails:  onBothSnapshots("delete", "missing"),
		leaves: true,
	},
	"shows no claim of snapshots": {
		breaking: breakSnaps(func(backends.Snapshots) snapHooks {
			return snapHooks{shows: func(s *backends.Snapshot) { s.Marks.Claim = "" }}
		}),
		fails: onBothSnapshots("claim", "marks-at-birth"),
	},
	"answers marks of snapshots that it didn't write": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{marks: func(ctx context.Context, s backends.Snapshot, marks backends.Marks) (backends.Snapshot, error) {
				s, err := real.Get(ctx, s.ID)
				s.Marks = marks
				return s, err
			}}
		}),
		fails: []string{"snapshot/marks", "snapshot/conflict"},
	},
	"marks snapshots that are gone": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{marks: func(ctx context.Context, s backends.Snapshot, marks backends.Marks) (backends.Snapshot, error) {
				out, err := real.Mark(ctx, s, marks)
				if backends.HasCode(err, backends.NotFound) {
					return s, nil
				}
				return out, err
			}}
		}),
		fails: []string{"snapshot/marks"},
	},
	"knows no names of snapshots": {
		breaking: breakSnaps(func(real backends.Snapshots) snapHooks {
			return snapHooks{
				ofVolume: func(ctx context.Context, volume string) ([]backends.Snapshot, error) {
					found, err := real.OfVolume(ctx, volume)
					for i := range found {
						found[i].Name = ""
					}
					return found, err
				},
				makes: func(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
					s, err := real.Make(ctx, spec)
					if _, taken := errors.AsType[*backends.NameTaken](err); taken {
						err = backends.Errorf(backends.ProviderError, "No.")
					}
					return s, err
				},
			}
		}),
		fails: []string{"snapshot/name"},
	},
	"loses the snapshots of a volume that is gone": {
		breaking: func(h *hookedOcean) {
			h.snaps = func(real backends.Snapshots) snapHooks {
				return snapHooks{ofVolume: func(ctx context.Context, volume string) ([]backends.Snapshot, error) {
					if _, err := h.oceanClient.Volumes().Get(ctx, volume); backends.HasCode(err, backends.NotFound) {
						return nil, nil
					}
					return real.OfVolume(ctx, volume)
				}}
			}
		},
		fails: []string{"snapshot/outlives"},
	},
}

// mustFail fails the test unless exactly those cases failed, each by itself and not
// by what cleaning up left.
func mustFail(t *testing.T, report conformance.Report, want []string) {
	t.Helper()
	t.Log("\n" + text(t, report))
	if report.Err != nil {
		t.Errorf("the run was kept from its end: %v", report.Err)
	}
	got, want := failed(report), slices.Sorted(slices.Values(want))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("failed: %v; want %v", got, want)
	}
	for _, r := range report.Results {
		if r.Status == conformance.Failed && r.Err == nil {
			t.Errorf("%s failed only because something was left", r.Case.Name)
		}
	}
}
