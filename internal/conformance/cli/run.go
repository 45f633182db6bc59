// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package cli is the subcommand "conformance": it runs the cases against an account.
package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance/recording"
	"github.com/better-compute/terraform-provider-bettercompute/internal/flagvalue"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
	"github.com/better-compute/terraform-provider-bettercompute/internal/secrets"
)

// defaultTimeout is twice what a run of all cases takes where machines boot in a minute.
const defaultTimeout = 2 * time.Hour

// The exit statuses.
const (
	statusOK     = 0
	statusFailed = 1 // a case failed, or something is left, or the run was ended
	statusUsage  = 2
)

const usage = `Usage: terraform-provider-bettercompute conformance ACCOUNT-URI -offer OFFER -image IMAGE [flags]

Runs the cases of the provider contract against an account, and cleans up after
each. It makes about forty machines, one or two at a time, each for a minute or so,
and where the cloud has them about fifty volumes and fifteen snapshots, and with
-network about thirty shared volumes and ten snapshots of those: they cost what the
cloud asks for that. Only what has its own names (PREFIX-…), or is in its own
pools where names can't be chosen, is touched. -run selects cases: those of volumes
are volume/, attach/, going/ and snapshot/, those of shared volumes share/ and
share-snapshot/.

A case that needs what the cloud doesn't have, or what wasn't given, is skipped, and
the report says why. On a cloud with tags the tag of a label, conformance:kept, and
those that all managed objects share stay behind.

ACCOUNT-URI is an account's uri attribute, such as
'hetzner-cloud://root/main?token=env://HCLOUD_TOKEN' (mind the quotes). Secrets
are resolved from the environment (env://) and from Vault (vault://, by VAULT_ADDR
and its like).

Where the account, the offer or the image can't be used at all, the remaining
cases are skipped.

Exit status: 0 if nothing failed, 1 if something did or couldn't be cleaned up,
2 for wrong arguments, such as a reference to a variable that isn't set.

Flags:
`

type options struct {
	uri                          string
	offer, image, region, prefix string
	network, shareRegion         string
	volumeGiB, shareGiB          int64
	powerObservable              bool
	wrongCredential              string
	record, replay               string
	only                         string
	timeout                      time.Duration
	list                         bool
}

// Run is the subcommand. The end of ctx (Ctrl-C) ends the run; what its current
// case made is cleaned up all the same. It returns the exit status.
func Run(ctx context.Context, args []string, registry *backends.Registry, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return statusOK
	case err == nil && o.list:
		for _, c := range conformance.Cases() {
			fmt.Fprintf(stdout, "%s: %s\n", c.Name, c.About)
		}
		return statusOK
	}
	var subject conformance.Subject
	if err == nil {
		subject, err = o.subject(ctx, registry)
	}
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		if e := backends.AsError(err); e != nil && e.Remedy != "" {
			fmt.Fprintln(stderr, e.Remedy)
		}
		fmt.Fprintln(stderr, "conformance -h lists the flags.")
		return statusUsage
	}
	return o.run(ctx, subject, stdout, stderr)
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&o.offer, "offer", "", "an `offer` that can be had now; required")
	flags.StringVar(&o.image, "image", "", "an `image` that fits the offer; required")
	flags.StringVar(&o.region, "region", "", "the `region` of the machines and their volumes; the account's if unset")
	flags.StringVar(&o.network, "network", "", "the cloud's `id` of a network for shared volumes; without it they aren't tested")
	flags.StringVar(&o.shareRegion, "share-region", "", "the `region` of the shared volumes, which must be the network's; that of the machines if unset")
	flags.Int64Var(&o.volumeGiB, "volume-size", conformance.DefaultVolumeGiB,
		"the `GiB` of a block volume, which is grown by "+strconv.Itoa(conformance.Growth))
	flags.Int64Var(&o.shareGiB, "share-size", conformance.DefaultShareGiB, "the `GiB` of a shared volume, which is grown by as much")
	flags.StringVar(&o.prefix, "prefix", "", "the `prefix` of all names, at most 24 characters; no two runs at the same time may share one; random if unset")
	flags.BoolVar(&o.powerObservable, "power-observable", true, "whether the cloud reports if a machine runs; with =false that isn't looked at")
	flags.StringVar(&o.wrongCredential, "wrong-credential", "", "a secret `reference`, such as env://WRONG, to a credential that the cloud must refuse; without it that isn't tested")
	flags.StringVar(&o.record, "record", "", "record all requests and answers in this `file`, without credentials")
	flags.StringVar(&o.replay, "replay", "", "answer all requests from this recorded `file`: no network, no secrets; needs the other arguments of the recorded run; "+backends.TimeScaleVariable+"=0.01 makes it fast")
	flags.StringVar(&o.only, "run", "", "run only the cases whose names match this `regexp`")
	o.timeout = defaultTimeout
	flags.Var((*flagvalue.Duration)(&o.timeout), "timeout", "end the run after this `duration`")
	flags.BoolVar(&o.list, "list", false, "list the cases and end")
	return flags
}

// parse takes flags before and after the uri.
func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	flags := o.flags()
	var uris []string
	for {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			flags.SetOutput(stdout)
			flags.PrintDefaults()
			return nil, err
		} else if err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		uris = append(uris, flags.Arg(0))
		args = flags.Args()[1:]
	}
	if o.list {
		return o, nil
	}
	var problems []error
	problem := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problem(len(uris) == 0, "an account uri is required")
	problem(len(uris) > 1, "there are %d arguments beside the flags; an account uri is the only one", len(uris))
	problem(o.offer == "", "-offer is required")
	problem(o.image == "", "-image is required")
	problem(o.volumeGiB <= 0, "-volume-size must be more than nothing")
	problem(o.shareGiB <= 0, "-share-size must be more than nothing")
	problem(o.shareRegion != "" && o.network == "", "-share-region is nothing without a -network")
	problem(o.timeout <= 0, "-timeout must be more than nothing")
	problem(o.record != "" && o.replay != "", "-record and -replay exclude each other")
	problem(o.prefix == "" && o.record+o.replay != "", "-record and -replay need a -prefix: a replay has the prefix of its recording")
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if o.prefix == "" {
		o.prefix = "ci-" + strings.ToLower(rand.Text()[:8])
	}
	o.uri = uris[0]
	return o, nil
}

// subject is what the arguments name, all but its environment's transport.
func (o *options) subject(ctx context.Context, registry *backends.Registry) (conformance.Subject, error) {
	s := conformance.Subject{
		Offer: o.offer, Image: o.image, Region: o.region, Prefix: o.prefix, PowerUnobservable: !o.powerObservable,
		Network: o.network, ShareRegion: o.shareRegion, VolumeGiB: o.volumeGiB, ShareGiB: o.shareGiB,
		Environment: backends.Environment{UserAgent: "terraform-provider-bettercompute-conformance", Log: slog.New(slog.DiscardHandler)},
	}
	if problem := conformance.PrefixProblem(o.prefix); problem != "" {
		return s, fmt.Errorf("-prefix: %s", problem)
	}
	var err error
	if s.Account, err = reference.ParseKind(registry, reference.KindAccount, o.uri); err != nil {
		return s, err
	}
	if o.only != "" {
		if s.Only, err = regexp.Compile(o.only); err != nil {
			return s, fmt.Errorf("-run: %w", err)
		}
		if !matchesAny(s.Only) {
			return s, fmt.Errorf("-run: no case's name matches %q; -list lists them", o.only)
		}
	}
	if o.wrongCredential != "" {
		if _, err := secrets.Parse(o.wrongCredential); err != nil {
			return s, fmt.Errorf("-wrong-credential: %w", err)
		}
	}
	resolver, issues := secrets.New(secrets.Config{})
	if len(issues) > 0 {
		return s, issues[0]
	}
	s.Environment.Secrets = resolver
	if o.replay != "" {
		return s, nil // a recording needs no secrets
	}
	return s, o.resolves(ctx, s)
}

// resolves makes sure that the references lead to something: one that doesn't is a
// mistake of the command line, not of the backend.
func (o *options) resolves(ctx context.Context, s conformance.Subject) error {
	for _, name := range references(s.Account.FullConfig()) {
		if _, err := s.Environment.Secrets.Resolve(ctx, name); err != nil {
			return fmt.Errorf("the account: %w", err)
		}
	}
	if o.wrongCredential != "" {
		if _, err := s.Environment.Secrets.Resolve(ctx, o.wrongCredential); err != nil {
			return fmt.Errorf("-wrong-credential: %w", err)
		}
	}
	return nil
}

// references are the secret references in a configuration, at any depth.
func references(tree any) []string {
	var out []string
	switch x := tree.(type) {
	case backends.Values:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			out = append(out, references(x[name])...)
		}
	case []any:
		for _, value := range x {
			out = append(out, references(value)...)
		}
	case string:
		if _, err := secrets.Parse(x); err == nil {
			out = append(out, x)
		}
	}
	return out
}

func matchesAny(only *regexp.Regexp) bool {
	for _, c := range conformance.Cases() {
		if only.MatchString(c.Name) {
			return true
		}
	}
	return false
}

func (o *options) run(ctx context.Context, s conformance.Subject, stdout, stderr io.Writer) int {
	fail := func(what string, err error) int {
		fmt.Fprintf(stderr, "conformance: %s: %v\n", what, err)
		return statusFailed
	}
	var recorder *recording.Recorder
	switch {
	case o.replay != "":
		player, err := recording.NewPlayer(o.replay)
		if err != nil {
			return fail("the recording can't be read", err)
		}
		s.Environment.Transport, s.Environment.Secrets = player, recording.NoSecrets{}
	default:
		var network carrier
		defer network.close()
		s.Environment.Wrap = network.wrap
		if o.record == "" {
			break
		}
		var err error
		if recorder, err = recording.NewRecorder(o.record, &network); err != nil {
			return fail("the recording can't be written", err)
		}
		s.Environment.Wrap = func(base http.RoundTripper) http.RoundTripper {
			network.wrap(base)
			return recorder
		}
		s.Environment.Secrets = recorder.Secrets(s.Environment.Secrets)
	}
	if o.record+o.replay != "" {
		s.Claim = conformance.FixedClaims(o.prefix)
	}
	if o.wrongCredential != "" {
		s.WrongSecrets = wrongly{s.Environment.Secrets, credentials(s.Account), o.wrongCredential}
	}

	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("-timeout %s is over: %w", o.timeout, context.DeadlineExceeded))
	defer cancel()
	fmt.Fprintf(stdout, "Conformance of %s with the prefix %s:\n\n", s.Account, o.prefix)
	s.Progress = func(r conformance.Result) { fmt.Fprint(stdout, r) }
	report := conformance.Run(ctx, s)
	fmt.Fprint(stdout, report.Summary())

	if recorder != nil {
		if err := recorder.Save(); err != nil {
			return fail("the recording can't be written", err)
		}
		fmt.Fprintf(stdout, "Recorded in %s.\n", o.record)
		if n := recorder.Unanswered(); n > 0 {
			fmt.Fprintf(stderr, "conformance: %d requests got no answer, so the recording lacks them: it may not replay.\n", n)
		}
	}
	if !report.OK() {
		return statusFailed
	}
	return statusOK
}

// credentials are the references that an account's manifest says are secrets. Other
// references, such as one to a certificate authority, are no credentials.
func credentials(account reference.Reference) []string {
	config := account.FullConfig()
	var out []string
	for _, f := range account.Definition().Manifest.Account {
		if f.Secret {
			out = append(out, config.String(f.Name))
		}
	}
	return out
}

// wrongly resolves references to credentials as another one.
type wrongly struct {
	backends.Secrets
	credentials []string
	wrong       string
}

func (s wrongly) instead(reference string) string {
	if slices.Contains(s.credentials, reference) {
		return s.wrong
	}
	return reference
}

// Resolve implements [backends.Secrets].
func (s wrongly) Resolve(ctx context.Context, reference string) (string, error) {
	return s.Secrets.Resolve(ctx, s.instead(reference))
}

// Forget implements [backends.Secrets].
func (s wrongly) Forget(reference string) { s.Secrets.Forget(s.instead(reference)) }

// carrier carries requests by the transport of the backend that was built last: all
// backends of a run are of one account.
type carrier struct {
	mu   sync.Mutex
	base http.RoundTripper
	all  []http.RoundTripper
}

// wrap takes a backend's transport.
func (c *carrier) wrap(base http.RoundTripper) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.all = base, append(c.all, base)
	return base
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	base := c.base
	c.mu.Unlock()
	return base.RoundTrip(r)
}

func (c *carrier) close() {
	for _, t := range c.all {
		if idle, ok := t.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	}
}
