// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package digitalocean is the DigitalOcean backend, on the vendor's own client
// godo. Its retries stay off, since they repeat POSTs: the one retry policy is
// [backends.Retry].
//
// Every call goes through godo's request primitive and godo's types, not through
// its services: those drop the answer's status when a body can't be decoded, take a
// list without its field for an empty one, and some lose the endpoint's path.
//
// Four rules shape it. A Droplet is made by one POST that carries everything, tags
// included, since names aren't unique and the API has no idempotency key: what was
// made is found again by its tags. An object is gone only when the API itself says
// so in JSON, since a wrong endpoint also answers 404. An answer that lacks what it
// must have (a list without a total, a Droplet without an id) is a failure, never an
// empty result. And tags are written one by one, in an order that leaves an object
// sensible wherever a run ends.
//
// Sources: the published OpenAPI description of the DigitalOcean API
// (https://docs.digitalocean.com/reference/api), the source of godo, and threads of
// the vendor's clients where they say more than either.
package digitalocean

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ID is the definition's id.
const ID = "digitalocean"

// DefaultEndpoint is the vendor's API; its paths begin with the version.
const DefaultEndpoint = "https://api.digitalocean.com"

// listLag is how long a new Droplet may be missing from lists (DESIGN.md §7).
const listLag = time.Minute

// rateLimit: 5,000 requests an hour and 250 a minute, a 20th of them, from one token
// (https://docs.digitalocean.com/reference/api/reference/rate-limits).
var rateLimit = backends.LimitRules{Burst: 20}

// Options are what a program, not a user, chooses. The zero value is the real
// cloud.
type Options struct {
	// Transport carries the requests instead of the environment's.
	Transport http.RoundTripper
	// Endpoint is the default of the account's endpoint; "" means [DefaultEndpoint].
	Endpoint string
	// TagPrefix is the managed marker, and what all our other tags begin with; ""
	// means [DefaultTagPrefix]. It is lower case.
	TagPrefix string
}

// New is the definition of DigitalOcean.
func New(options Options) *backends.Definition {
	if options.Endpoint == "" {
		options.Endpoint = DefaultEndpoint
	}
	if options.TagPrefix == "" {
		options.TagPrefix = DefaultTagPrefix
	}
	return &backends.Definition{
		ID:          ID,
		Title:       "DigitalOcean",
		Version:     "1.0.0",
		Provides:    []backends.Kind{backends.KindVPS},
		Description: "Droplets of DigitalOcean, GPU Droplets among them.",
		Manifest: backends.Manifest{
			Account: accountFields(options.Endpoint),
			Machine: machineFields(options.TagPrefix),
			Volume:  volumeFields(options.TagPrefix),
		},
		ListLag:      listLag,
		CheckAccount: checkAccount,
		Region:       region,
		Moves:        movable(),
		Create: func(config backends.Values, env backends.Environment) (backends.Backend, error) {
			return newClient(options, config, env)
		},
	}
}

// region is where an account's machines are made that name none: the account's
// region, or the only one of its regions.
func region(config backends.Values) string {
	if r := config.String("region"); r != "" {
		return r
	}
	if regions := config.Strings("regions"); len(regions) == 1 && len(config.List("regions")) == 1 {
		return regions[0]
	}
	return ""
}

// checkAccount implements [backends.Definition.CheckAccount]: one of region and a
// single regions says where machines are made, and region is one of regions.
func checkAccount(config backends.Values) []*backends.Error {
	where, regions := config["region"], config["regions"]
	if backends.IsUnknown(where) || backends.IsUnknown(regions) || slices.ContainsFunc(config.List("regions"), backends.IsUnknown) {
		return nil
	}
	allowed := config.Strings("regions")
	switch name := config.String("region"); {
	case name == "" && len(allowed) != 1:
		return []*backends.Error{backends.Errorf(backends.InvalidInput, "region is required, unless regions has exactly one.").At("region").
			WithRemedy("Set region to where machines are made that name no region, such as \"fra1\".")}
	case name != "" && len(allowed) > 0 && !slices.Contains(allowed, name):
		return []*backends.Error{backends.Errorf(backends.InvalidInput, "The region %q is not among the account's regions.", name).At("region").
			WithRemedy("Use %s, or add it to regions.", backends.Choice(allowed))}
	}
	return nil
}

func newClient(options Options, config backends.Values, env backends.Environment) (*Client, error) {
	endpoint, err := url.Parse(config.String("endpoint"))
	if err != nil || checkEndpoint(config.String("endpoint")) != "" {
		// The text of err would repeat the value, which may hold a password.
		return nil, backends.Errorf(backends.InvalidConfig, "The account's endpoint is not usable.").
			At(attribute, "endpoint")
	}
	limits := backends.LimitsOf(env, options.Transport)
	transport := options.Transport
	if transport == nil {
		transport = env.Transport
	}
	if transport == nil {
		transport = backends.NewTransport()
	}
	limited := backends.Limited(backends.Logged(env.Wrapped(transport), env.Log), limits, rateLimit, env.Log)
	authorized := backends.Authorize(limited, env.Secrets, config.String("token"), endpoint,
		func(credential string) (name, value string) { return "Authorization", "Bearer " + credential })
	return build(endpoint, authorized, env.UserAgent, options.TagPrefix, config.Strings("regions"))
}
