// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	backend "github.com/better-compute/terraform-provider-bettercompute/internal/backends/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

const (
	goodToken  = "good-token"
	wrongToken = "wrong-token"
)

// fixed resolves every reference to one value.
type fixed string

func (f fixed) Resolve(context.Context, string) (string, error) { return string(f), nil }
func (f fixed) Forget(string)                                   {}

// newCloud is an emulated cloud in which servers take a while to boot and to go,
// and which knows one token.
func newCloud() *emulated.Service {
	return emulated.New(emulated.Options{Boot: 8 * time.Second, Latency: 20 * time.Millisecond, Projects: emulator.Projects{goodToken: "main"}})
}

// breaking makes a definition whose backends are broken in one way; nil breaks
// nothing.
type breaking func(*backend.Client, *emulated.Service) backends.Backend

func subject(t *testing.T, cloud *emulated.Service, broken breaking) conformance.Subject {
	t.Helper()
	definition := backend.New(backend.Options{})
	if broken != nil {
		create := definition.Create
		definition.Create = func(config backends.Values, env backends.Environment) (backends.Backend, error) {
			b, err := create(config, env)
			if err != nil {
				return nil, err
			}
			return broken(b.(*backend.Client), cloud), nil
		}
	}
	return subjectOf(t, cloud, definition)
}

func subjectOf(t *testing.T, cloud *emulated.Service, definition *backends.Definition) conformance.Subject {
	t.Helper()
	registry, err := backends.NewRegistry(definition)
	if err != nil {
		t.Fatal(err)
	}
	account, err := reference.ParseKind(registry, reference.KindAccount, "hetzner-cloud://root/main?token=env://HCLOUD_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Subject{
		Account:      account,
		Environment:  backends.Environment{Secrets: fixed(goodToken), Transport: emulator.Transport(cloud), UserAgent: "test"},
		Offer:        "cx23",
		Image:        "debian-13",
		Prefix:       "ci-1",
		WrongSecrets: fixed(wrongToken),
	}
}

// leaks fails the test for everything that is left in the cloud.
func leaks(t *testing.T, cloud interface{ Objects() emulator.Objects }) {
	t.Helper()
	left := cloud.Objects()
	for kind, objects := range map[string][]emulator.Object{"machine": left.Machines, "volume": left.Volumes, "snapshot": left.Snapshots} {
		for _, o := range objects {
			t.Errorf("the %s %s (%s) is left, %s", kind, o.Name, o.ID, o.State)
		}
	}
}

func text(t *testing.T, report conformance.Report) string {
	t.Helper()
	var b strings.Builder
	for _, result := range report.Results {
		b.WriteString(result.String())
	}
	return b.String() + report.Summary()
}

// failed are the names of the cases that failed.
func failed(report conformance.Report) []string {
	var names []string
	for _, result := range report.Results {
		if result.Status == conformance.Failed {
			names = append(names, result.Case.Name)
		}
	}
	return names
}

func TestHetznerConforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		conforms(t, subject(t, cloud, nil), map[string]string{
			"share/": "sharedVolumes", "snapshot/": "snapshots", "share-snapshot/": "sharedSnapshots",
			"going/with": "selectiveDestroy", "going/selects": "selectiveDestroy", "tidy/": "tidied",
		})
		leaks(t, cloud)
	})
}

// conforms runs all cases and fails the test for one that fails, and for one that is
// skipped and isn't in skips: beginnings of names, with what the reason must say.
func conforms(t *testing.T, s conformance.Subject, skips map[string]string) {
	t.Helper()
	report := conformance.Run(t.Context(), s)
	t.Log("\n" + text(t, report))
	if !report.OK() {
		t.Error("a case failed")
	}
	if len(report.Results) != len(conformance.Cases()) {
		t.Errorf("%d cases of %d were reported on", len(report.Results), len(conformance.Cases()))
	}
	for _, r := range report.Results {
		reason, expected := "", false
		for begin, why := range skips {
			if strings.HasPrefix(r.Case.Name, begin) {
				reason, expected = why, true
			}
		}
		if skipped := r.Status == conformance.Skipped; skipped != expected || skipped && !strings.Contains(r.Reason, reason) {
			t.Errorf("%s is %s (%s)", r.Case.Name, r.Status, r.Reason)
		}
	}
	if !slices.ContainsFunc(report.Results, func(r conformance.Result) bool { return r.Calls > 5 }) {
		t.Error("no calls were counted")
	}
}

func TestCancellationCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		ctx, cancel := context.WithCancelCause(t.Context())
		s := subject(t, cloud, nil)
		begin := time.Now()
		// The first case that makes a machine takes 8 s; it is interrupted halfway.
		time.AfterFunc(4*time.Second, func() { cancel(errors.New("interrupted by the test")) })
		report := conformance.Run(ctx, s)
		out := text(t, report)
		if report.OK() || report.Err == nil || !strings.Contains(out, "interrupted by the test") {
			t.Errorf("the report doesn't say that it was interrupted:\n%s", out)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it took %s to end", took)
		}
		if len(report.Results) != len(conformance.Cases()) {
			t.Errorf("%d cases of %d were reported on", len(report.Results), len(conformance.Cases()))
		}
		leaks(t, cloud)
	})
}
