// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func definitionCases() []Case {
	return []Case{
		{
			Name:  "definition/checks",
			About: "The definition passes the checks of its registration.",
			Run: func(_ context.Context, t *Trial) error {
				if err := t.Subject.Account.Definition().Check(); err != nil {
					return err
				}
				if t.Subject.Account.Definition().Region(t.Subject.Account.FullConfig()) == "" {
					return wrong("the definition gives the account no region")
				}
				return nil
			},
		},
		{
			Name:  "definition/builds",
			About: "The definition builds a client without a call and without resolving a secret.",
			Run:   buildsWithoutCalls,
		},
		{
			Name:  "credentials/good",
			About: "Prove accepts a credential that works.",
			Vital: true,
			Run:   func(ctx context.Context, t *Trial) error { return t.Backend.Prove(ctx) },
		},
		{
			Name:  "credentials/wrong",
			About: "Prove refuses a credential that doesn't work, with the reason credentials.",
			Needs: []Need{NeedWrongCredentials},
			Run:   refusesWrongCredentials,
		},
	}
}

// errSealed is the answer to what a definition must not do while it builds.
var errSealed = errors.New("a definition must not do this while it builds a client")

// sealed is an environment that counts what is asked of it and grants nothing.
type sealed struct{ calls, secrets atomic.Int64 }

// RoundTrip implements [http.RoundTripper].
func (s *sealed) RoundTrip(*http.Request) (*http.Response, error) {
	s.calls.Add(1)
	return nil, errSealed
}

// Resolve implements [backends.Secrets].
func (s *sealed) Resolve(context.Context, string) (string, error) {
	s.secrets.Add(1)
	return "", errSealed
}

// Forget implements [backends.Secrets].
func (s *sealed) Forget(string) {}

func buildsWithoutCalls(_ context.Context, t *Trial) error {
	var seal sealed
	env := backends.Environment{Secrets: &seal, Transport: &seal, UserAgent: t.Environment.UserAgent, Log: slog.New(slog.DiscardHandler)}
	backend, err := t.Subject.Account.Definition().Create(t.Subject.Account.FullConfig(), env)
	switch {
	case err != nil:
		return fmt.Errorf("building a client: %w", err)
	case backend == nil:
		return wrong("the definition built no client, and no error")
	case seal.calls.Load() > 0:
		return wrong("building a client made %d calls", seal.calls.Load())
	case seal.secrets.Load() > 0:
		return wrong("building a client resolved %d secrets: they are resolved per request", seal.secrets.Load())
	}
	return nil
}

func refusesWrongCredentials(ctx context.Context, t *Trial) error {
	env := t.Environment
	env.Secrets = t.WrongSecrets
	backend, err := t.Subject.Account.Definition().Create(t.Subject.Account.FullConfig(), env)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	err = backend.Prove(ctx)
	switch {
	case err == nil:
		return wrong("Prove accepted the wrong credential")
	case !backends.HasReason(err, backends.ReasonCredentials):
		return wrong("Prove must refuse the wrong credential with the reason credentials; it failed with: %w", err)
	}
	return nil
}
