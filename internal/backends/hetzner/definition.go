// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package hetzner is the Hetzner Cloud backend, on the vendor's own client
// hcloud-go with its retries switched off: the one retry policy is
// [backends.Retry].
//
// Three rules shape it. A server is made by one POST that carries everything the
// API takes at birth, marks and labels included; what the POST has no field for
// is [Client.FinishMachine]'s. An object is gone only when the API itself says so
// in JSON, since a wrong endpoint also answers 404. And an answer that lacks what
// it must have (a list without pagination, a server without an id) is a failure,
// never an empty result.
//
// Sources: the published OpenAPI description of the Hetzner Cloud API
// (https://docs.hetzner.cloud) and the source of hcloud-go.
package hetzner

import (
	"net/http"
	"net/url"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// ID is the definition's id.
const ID = "hetzner-cloud"

// DefaultEndpoint is the vendor's API, version included.
const DefaultEndpoint = "https://api.hetzner.cloud/v1"

// DefaultLabelPrefix is the prefix of the labels that hold [backends.Marks].
const DefaultLabelPrefix = "better-compute.io"

// rateLimit: 3,600 requests an hour, one a second, counted for all tokens of a project
// together (https://docs.hetzner.cloud, "Rate Limiting").
var rateLimit = backends.LimitRules{Refills: true}

// Options are what a program, not a user, chooses. The zero value is the real
// cloud.
type Options struct {
	// Transport carries the requests instead of the environment's.
	Transport http.RoundTripper
	// Endpoint is the default of the account's endpoint; "" means [DefaultEndpoint].
	Endpoint string
	// LabelPrefix is the DNS name before the "/" of our labels' keys; "" means
	// [DefaultLabelPrefix].
	LabelPrefix string
}

// New is the definition of Hetzner Cloud.
func New(options Options) *backends.Definition {
	if options.Endpoint == "" {
		options.Endpoint = DefaultEndpoint
	}
	if options.LabelPrefix == "" {
		options.LabelPrefix = DefaultLabelPrefix
	}
	return &backends.Definition{
		ID:          ID,
		Title:       "Hetzner Cloud",
		Version:     "1.0.0",
		Provides:    []backends.Kind{backends.KindVPS},
		Description: "Servers of Hetzner Cloud, in Germany, Finland, the USA and Singapore.",
		Manifest: backends.Manifest{
			Account: accountFields(options.Endpoint),
			Machine: machineFields(),
		},
		Region: func(config backends.Values) string { return config.String("location") },
		Moves:  movable(),
		Create: func(config backends.Values, env backends.Environment) (backends.Backend, error) {
			return newClient(options, config, env)
		},
	}
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
	return build(endpoint, authorized, env.UserAgent, options.LabelPrefix), nil
}
