// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	backend "github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
)

// exactly selects cases by their whole names.
func exactly(names ...string) *regexp.Regexp {
	return regexp.MustCompile("^(?:" + strings.Join(names, "|") + ")$")
}

func TestBrokenBackendsFail(t *testing.T) {
	for name, b := range allBroken() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newCloud()
				s := subject(t, cloud, b.breaking)
				s.Only = exactly(b.fails...)
				report := conformance.Run(t.Context(), s)
				mustFail(t, report, b.fails)
				accountFor(t, cloud, report, b.leaves)
			})
		})
	}
}

// accountFor fails the test when something is left that the report doesn't name, or
// anything when nothing may be.
func accountFor(t *testing.T, cloud interface{ Objects() emulator.Objects }, report conformance.Report, leaves bool) {
	t.Helper()
	if !leaves {
		leaks(t, cloud)
		for _, l := range report.Left() {
			t.Errorf("reported as left: %s", l)
		}
		return
	}
	if len(report.Left()) == 0 {
		t.Error("cleaning up couldn't work, and the report doesn't say so")
	}
	left := cloud.Objects()
	for _, o := range slices.Concat(left.Machines, left.Volumes, left.Snapshots) {
		if !slices.ContainsFunc(report.Left(), func(l conformance.Leftover) bool { return l.Object.ID == o.ID }) {
			t.Errorf("%s (%s) is left, and the report doesn't say so", o.Name, o.ID)
		}
	}
}

// TestEveryCaseCanFail: a case that no broken backend fails proves nothing.
func TestEveryCaseCanFail(t *testing.T) {
	canFail := map[string]bool{}
	for _, b := range allBroken() {
		for _, name := range b.fails {
			canFail[name] = true
		}
	}
	for _, b := range allBrokenOceans() {
		for _, name := range b.fails {
			canFail[name] = true
		}
	}
	for name := range brokenDefinitions {
		canFail[name] = true
	}
	names := map[string]bool{}
	for _, c := range conformance.Cases() {
		if !canFail[c.Name] {
			t.Errorf("nothing here makes %s fail", c.Name)
		}
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		if c.About == "" || c.Run == nil {
			t.Errorf("%s is incomplete", c.Name)
		}
	}
	for name := range canFail {
		if !names[name] {
			t.Errorf("there is no case %s", name)
		}
	}
}

// brokenDefinitions are, by the case that must notice, ways to spoil a definition
// after its registration.
var brokenDefinitions = map[string]map[string]func(*backends.Definition){
	"definition/checks": {
		"no version": func(d *backends.Definition) { d.Version = "" },
		"no region":  func(d *backends.Definition) { d.Region = func(backends.Values) string { return "" } },
	},
	"definition/builds": {
		"makes a call": func(d *backends.Definition) {
			spoilCreate(d, func(env backends.Environment) {
				request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1/", http.NoBody)
				if err != nil {
					return
				}
				if answer, err := env.Transport.RoundTrip(request); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
			})
		},
		"resolves a secret": func(d *backends.Definition) {
			spoilCreate(d, func(env backends.Environment) { _, _ = env.Secrets.Resolve(context.Background(), "env://X") })
		},
		"builds nothing": func(d *backends.Definition) {
			create, n := d.Create, 0
			d.Create = func(config backends.Values, env backends.Environment) (backends.Backend, error) {
				if n++; n > 1 { // the run's own comes first
					return nil, nil //nolint:nilnil // That is what is broken.
				}
				return create(config, env)
			}
		},
	},
}

func spoilCreate(d *backends.Definition, also func(backends.Environment)) {
	create := d.Create
	d.Create = func(config backends.Values, env backends.Environment) (backends.Backend, error) {
		also(env)
		return create(config, env)
	}
}

func TestBrokenDefinitionsFail(t *testing.T) {
	for name, ways := range brokenDefinitions {
		for way, spoil := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cloud := newCloud()
					definition := backend.New(backend.Options{})
					s := subjectOf(t, cloud, definition)
					spoil(definition)
					s.Only = exactly(name)
					report := conformance.Run(t.Context(), s)
					if !slices.Equal(failed(report), []string{name}) {
						t.Errorf("failed: %v; want %s\n%s", failed(report), name, text(t, report))
					}
				})
			})
		}
	}
}

// TestWrongSubjectEndsTheRun: with an offer or image that isn't there, the cases
// that need machines would all fail for that one reason.
func TestWrongSubjectEndsTheRun(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*conformance.Subject)
		fails []string
	}{
		"offer": {func(s *conformance.Subject) { s.Offer = "no-such" }, []string{"offers/subject", "check/subject"}},
		"image": {func(s *conformance.Subject) { s.Image = "no-such" }, []string{"check/subject"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := subject(t, newCloud(), nil)
				test.spoil(&s)
				report := conformance.Run(t.Context(), s)
				if !slices.Equal(failed(report), test.fails) {
					t.Errorf("failed: %v; want %v", failed(report), test.fails)
				}
				after := false
				for _, r := range report.Results {
					if after && (r.Status != conformance.Skipped || r.Reason != "check/subject failed") {
						t.Errorf("%s is %s (%s)", r.Case.Name, r.Status, r.Reason)
					}
					after = after || r.Case.Name == "check/subject"
				}
				if len(report.Results) != len(conformance.Cases()) {
					t.Errorf("%d cases of %d were reported on", len(report.Results), len(conformance.Cases()))
				}
				if out := text(t, report); !strings.Contains(out, "no-such") {
					t.Errorf("the report doesn't name what is wrong:\n%s", out)
				}
			})
		})
	}
}

// minimal is a backend without any optional ability.
type minimal struct{ backends.Backend }

func TestMissingAbilitiesAreSkippedVisibly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		s := subject(t, cloud, func(c *backend.Client, _ *emulated.Service) backends.Backend { return minimal{c} })
		s.WrongSecrets = nil
		report := conformance.Run(t.Context(), s)
		out := text(t, report)
		if !report.OK() {
			t.Errorf("a backend without optional abilities fails:\n%s", out)
		}
		for _, c := range conformance.Cases() {
			i := slices.IndexFunc(report.Results, func(r conformance.Result) bool { return r.Case.Name == c.Name })
			if i < 0 {
				t.Errorf("%s was not reported on", c.Name)
				continue
			}
			r := report.Results[i]
			if skipped := r.Status == conformance.Skipped; skipped != (len(c.Needs) > 0) || skipped != (r.Reason != "") {
				t.Errorf("%s needs %v and is %s (%s)", c.Name, c.Needs, r.Status, r.Reason)
			}
		}
		if !strings.Contains(out, `the backend has no "reinstall"`) || !strings.Contains(out, "no wrong credential was given") {
			t.Errorf("the report doesn't say why cases were skipped:\n%s", out)
		}
		leaks(t, cloud)
	})
}

func TestUnobservablePower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subject(t, newCloud(), nil)
		s.PowerUnobservable = true
		s.Only = regexp.MustCompile("^power/")
		report := conformance.Run(t.Context(), s)
		if out := text(t, report); !report.OK() || !strings.Contains(out, "not observable") {
			t.Errorf("the report:\n%s", out)
		}
	})
}

func TestPrefixInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		// A run that can't delete leaves its machines.
		s := subject(t, cloud, broken["ignores deletes"].breaking)
		s.Only = exactly("create/makes")
		if report := conformance.Run(t.Context(), s); report.OK() {
			t.Fatal("a run that leaves machines passed")
		}
		report := conformance.Run(t.Context(), subject(t, cloud, nil))
		if out := text(t, report); report.OK() || len(report.Results) != 0 || !strings.Contains(out, "The prefix ci-1 is in use") {
			t.Errorf("the report:\n%s", out)
		}
		if n := len(cloud.Servers()); n != 1 {
			t.Errorf("%d servers are left of the one that another run made", n)
		}
		other := subject(t, cloud, nil)
		other.Prefix = "ci-2"
		other.Only = exactly("create/makes")
		if report := conformance.Run(t.Context(), other); !report.OK() {
			t.Errorf("another prefix meets the first:\n%s", text(t, report))
		}
	})
}

func TestRunsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		reports := make(chan conformance.Report)
		for _, prefix := range []string{"ci-1", "ci-2"} {
			s := subject(t, cloud, nil)
			s.Prefix = prefix
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

func TestSubjectIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*conformance.Subject){
		"no offer":   func(s *conformance.Subject) { s.Offer = "" },
		"no image":   func(s *conformance.Subject) { s.Image = "" },
		"no prefix":  func(s *conformance.Subject) { s.Prefix = "" },
		"bad prefix": func(s *conformance.Subject) { s.Prefix = "-ci" },
		"no secrets": func(s *conformance.Subject) { s.Environment.Secrets = nil },
		"a pool":     func(s *conformance.Subject) { s.Account.Kind = "pool" },
	} {
		t.Run(name, func(t *testing.T) {
			cloud := newCloud()
			s := subject(t, cloud, nil)
			spoil(&s)
			report := conformance.Run(t.Context(), s)
			if !backends.HasCode(report.Err, backends.InvalidInput) || report.OK() {
				t.Errorf("the run's error is %v", report.Err)
			}
		})
	}
}
