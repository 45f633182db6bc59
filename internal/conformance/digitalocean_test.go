// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	ocean "github.com/better-compute/terraform-provider-bettercompute/internal/backends/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulatedocean "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// newOcean is an emulated DigitalOcean in which Droplets take a while to boot, and
// what an action does shows a while after it.
func newOcean() *emulatedocean.Service {
	return emulatedocean.New(emulatedocean.Options{
		Boot: 8 * time.Second, StatusLag: time.Second, Latency: 20 * time.Millisecond, Projects: emulator.Projects{goodToken: emulator.DefaultProject},
	})
}

func oceanSubject(t *testing.T, cloud *emulatedocean.Service, broken func(*ocean.Client) backends.Backend) conformance.Subject {
	t.Helper()
	definition := ocean.New(ocean.Options{})
	if broken != nil {
		create := definition.Create
		definition.Create = func(config backends.Values, env backends.Environment) (backends.Backend, error) {
			b, err := create(config, env)
			if err != nil {
				return nil, err
			}
			return broken(b.(*ocean.Client)), nil
		}
	}
	registry, err := backends.NewRegistry(definition)
	if err != nil {
		t.Fatal(err)
	}
	account, err := reference.ParseKind(registry, reference.KindAccount, "digitalocean://root/main?region=fra1&token=env://DIGITALOCEAN_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Subject{
		Account:      account,
		Environment:  backends.Environment{Secrets: fixed(goodToken), Transport: emulator.Transport(cloud), UserAgent: "test"},
		Offer:        "s-1vcpu-1gb",
		Image:        "debian-13-x64",
		Network:      cloud.AddVPC("shares", "nyc2"),
		ShareRegion:  "nyc2",
		Prefix:       "ci-1",
		WrongSecrets: fixed(wrongToken),
	}
}

// ofVolumes selects the cases about volumes and snapshots.
var ofVolumes = regexp.MustCompile(`^(?:volume|attach|going|share|snapshot|share-snapshot)/`)

func TestDigitalOceanConforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newOcean()
		conforms(t, oceanSubject(t, cloud, nil), map[string]string{
			"list/phases": "the cloud can't select machines by what they are waited for", "volume/rename": "the backend renames no volumes",
		})
		leaks(t, cloud)
		// What is left of tags are those without a value, which all objects have in
		// common, and the labels of the cases about labels, which are a user's.
		shared := []string{"better-compute", "better-compute:complete", "better-compute:goes-with-machine", "better-compute:protected"}
		tags := slices.DeleteFunc(cloud.Tags(), func(tag string) bool {
			return slices.Contains(shared, strings.ToLower(tag)) || strings.HasPrefix(tag, "conformance")
		})
		if len(tags) > 0 {
			t.Errorf("%d tags are left: %v", len(tags), tags)
		}
	})
}

// TestDigitalOceanConformsUnderFaults: what the cloud is known to do to its clients
// is no breach of the contract.
func TestDigitalOceanConformsUnderFaults(t *testing.T) {
	for name, rule := range map[string]emulator.Rule{
		"lists lag":        {Method: http.MethodPost, Path: "*", Times: emulator.Forever, Kind: emulator.KindHideFromLists, Delay: emulator.Duration(5 * time.Second)},
		"early not found":  {Method: http.MethodPost, Path: "/droplets", Times: emulator.Forever, Kind: emulator.KindEarly404, Delay: emulator.Duration(2 * time.Second)},
		"pending events":   {Method: http.MethodPost, Path: "/volumes/*/actions", Nth: 1, Times: 5, Kind: emulator.KindPendingEvent},
		"a lost answer":    {Method: http.MethodPost, Path: "/volumes", Nth: 3, Times: 1, Kind: emulator.KindLoseAnswer},
		"a lost deletion":  {Method: http.MethodDelete, Path: "/volumes/*", Nth: 2, Times: 1, Kind: emulator.KindLoseAnswer},
		"a lost selection": {Method: http.MethodDelete, Path: "/droplets/*", Nth: 3, Times: 1, Kind: emulator.KindLoseAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newOcean()
				s := oceanSubject(t, cloud, nil)
				if err := cloud.AddFault(rule); err != nil {
					t.Fatal(err)
				}
				// The answer of a Make that is called without the rules above it may be lost.
				s.Only = regexp.MustCompile("^(?:volume|share|snapshot|share-snapshot|attach|going)/(?:makes|retry|resize|delete|lists|restores|outlives|with|selects|after|elsewhere)$")
				report := conformance.Run(t.Context(), s)
				t.Log("\n" + text(t, report))
				if !report.OK() {
					t.Error("a case failed")
				}
				leaks(t, cloud)
			})
		})
	}
}

// TestHiddenThingsAreCleanedUp: what neither lists nor a get show at first, and a case
// fails for, isn't left.
func TestHiddenThingsAreCleanedUp(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.KindEarly404, emulator.KindHideFromLists} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newOcean()
				s := oceanSubject(t, cloud, nil)
				rule := emulator.Rule{Method: http.MethodPost, Path: "/volumes", Times: emulator.Forever, Kind: kind, Delay: emulator.Duration(20 * time.Second)}
				if err := cloud.AddFault(rule); err != nil {
					t.Fatal(err)
				}
				s.Only = exactly("attach/makes", "snapshot/makes", "volume/marks-at-birth")
				s.CaseTimeout = 30 * time.Second
				report := conformance.Run(t.Context(), s)
				t.Log("\n" + text(t, report))
				leaks(t, cloud)
			})
		})
	}
}

// TestInterruptedVolumesAreCleanedUp interrupts cases that make more than one kind of
// things, at many moments.
func TestInterruptedVolumesAreCleanedUp(t *testing.T) {
	for _, name := range []string{"attach/elsewhere", "going/with", "share/snapshots", "snapshot/restores"} {
		t.Run(name, func(t *testing.T) {
			for after := 50 * time.Millisecond; after < time.Minute; after = after * 3 / 2 {
				synctest.Test(t, func(t *testing.T) {
					cloud := newOcean()
					s := oceanSubject(t, cloud, nil)
					s.Only = exactly(name)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					time.AfterFunc(after, cancel)
					report := conformance.Run(ctx, s)
					for _, l := range report.Left() {
						t.Errorf("after %s: %s", after, l)
					}
					leaks(t, cloud)
				})
			}
		})
	}
}

// TestVolumeRunsAtTheSameTime: runs share an account, and the tags of its objects.
func TestVolumeRunsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newOcean()
		reports := make(chan conformance.Report)
		for _, prefix := range []string{"ci-1", "ci-2"} {
			s := oceanSubject(t, cloud, nil)
			s.Prefix, s.Only = prefix, ofVolumes
			go func() { reports <- conformance.Run(t.Context(), s) }()
		}
		for range 2 {
			if report := <-reports; !report.OK() {
				t.Errorf("a run beside another fails:\n%s", text(t, report))
			}
		}
		leaks(t, cloud)
	})
}

func TestPrefixInUseByVolumes(t *testing.T) {
	for name, test := range map[string]struct{ broken, only, says string }{
		"a volume":   {"ignores deletes of volumes", "volume/makes", "the volume \"ci-1-volume-makes-0\""},
		"a share":    {"ignores deletes of volumes", "share/makes", "the shared volume \"bc-"},
		"a snapshot": {"ignores deletes of snapshots", "snapshot/makes", "the snapshot \"ci-1-snapshot-makes-0\""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newOcean()
				s := oceanSubject(t, cloud, func(c *ocean.Client) backends.Backend {
					h := &hookedOcean{oceanClient: c}
					allBrokenOceans()[test.broken].breaking(h)
					return h
				})
				s.Only = exactly(test.only)
				if report := conformance.Run(t.Context(), s); report.OK() {
					t.Fatal("a run that leaves something passed")
				}
				s = oceanSubject(t, cloud, nil)
				report := conformance.Run(t.Context(), s)
				if out := text(t, report); report.OK() || len(report.Results) != 0 || !strings.Contains(out, test.says) {
					t.Errorf("the report:\n%s", out)
				}
			})
		})
	}
}

// TestWithoutANetwork: shared volumes are skipped, and the report says why.
func TestWithoutANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newOcean()
		s := oceanSubject(t, cloud, nil)
		s.Network = ""
		s.Only = regexp.MustCompile("^(?:share|share-snapshot)/|^volume/check$")
		report := conformance.Run(t.Context(), s)
		for _, r := range report.Results {
			if skipped := r.Reason == "no network was given"; skipped != strings.HasPrefix(r.Case.Name, "share") {
				t.Errorf("%s is %s (%s)", r.Case.Name, r.Status, r.Reason)
			}
		}
		if !report.OK() {
			t.Errorf("the report:\n%s", text(t, report))
		}
	})
}

// TestNamesFit: with the longest prefix, volumes and snapshots are still called what
// the specification allows (providerVolumes.create).
func TestNamesFit(t *testing.T) {
	allowed := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,40}[a-z0-9])?$`)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var names []string
		note := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, name)
		}
		cloud := newOcean()
		s := oceanSubject(t, cloud, func(c *ocean.Client) backends.Backend {
			return &hookedOcean{
				oceanClient: c,
				disks: func(real backends.VolumeStore, _ backends.Volumes) diskHooks {
					return diskHooks{makes: func(ctx context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
						note(spec.Name)
						return real.Make(ctx, spec)
					}}
				},
				snaps: func(real backends.Snapshots) snapHooks {
					return snapHooks{makes: func(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
						note(spec.Name)
						return real.Make(ctx, spec)
					}}
				},
			}
		})
		s.Prefix, s.Only = "a"+strings.Repeat("b", 23), ofVolumes
		if report := conformance.Run(t.Context(), s); !report.OK() {
			t.Errorf("the report:\n%s", text(t, report))
		}
		if len(names) < 20 {
			t.Fatalf("only %d names were seen", len(names))
		}
		for _, name := range names {
			if !allowed.MatchString(name) || !strings.HasPrefix(name, s.Prefix+"-") {
				t.Errorf("the name %q is not allowed, or not the run's own", name)
			}
		}
	})
}
