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

// leaks fails the test for every server that is left in the cloud.
func leaks(t *testing.T, cloud *emulated.Service) {
	t.Helper()
	for _, s := range cloud.Servers() {
		t.Errorf("the server %s (%d) is left, with the labels %v", s.Name, s.ID, s.Labels)
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
		report := conformance.Run(t.Context(), subject(t, cloud, nil))
		out := text(t, report)
		t.Log("\n" + out)
		if !report.OK() {
			t.Error("a case failed")
		}
		if len(report.Results) != len(conformance.Cases()) {
			t.Errorf("%d cases of %d were reported on", len(report.Results), len(conformance.Cases()))
		}
		for _, r := range report.Results {
			if r.Status == conformance.Skipped {
				t.Errorf("%s was skipped: %s", r.Case.Name, r.Reason)
			}
		}
		leaks(t, cloud)
		if !slices.ContainsFunc(report.Results, func(r conformance.Result) bool { return r.Calls > 5 }) {
			t.Error("no calls were counted")
		}
	})
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
