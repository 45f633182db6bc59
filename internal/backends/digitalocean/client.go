// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const (
	// catalogLifetime is how long offers, images, and the existence of what a wish
	// names are believed.
	catalogLifetime = 10 * time.Minute
)

// Client is one team of DigitalOcean.
type Client struct {
	api     *godo.Client
	tags    tagNames
	regions []string // those the account may use; nil means all
	catalog *backends.Cached[*catalog]
	images  *imageCache
	// keys are the team's SSH keys by id and fingerprint.
	keys *backends.Cached[map[string]bool]
	// referred remembers which objects exist that wishes name.
	referred *backends.CachedByKey[referred, found]
	// shareOptions are what shares may be made like.
	shareOptions *backends.Cached[*godo.NfsOptions]
	// shared tells which tags are known to exist; see [Client.tagWith].
	shared sharedTags
	// going are the machines that this process has told to go with some of their
	// volumes; see [Client.Diagnose].
	going goingSet
	// shareActions holds the last action that this process has started on a share, by
	// the share's id; see [shares.Diagnose].
	shareActions sync.Map
}

var (
	_ backends.Backend            = (*Client)(nil)
	_ backends.Lister             = (*Client)(nil)
	_ backends.Powerer            = (*Client)(nil)
	_ backends.Reinstaller        = (*Client)(nil)
	_ backends.Diagnoser          = (*Client)(nil)
	_ backends.Tidier             = (*Client)(nil)
	_ backends.SelectiveDestroyer = (*Client)(nil)
)

func build(endpoint *url.URL, transport http.RoundTripper, userAgent, tagPrefix string, regions []string) (*Client, error) {
	api, err := godo.New(backends.NewLimitedClient(&noting{transport}),
		// Without the slash godo drops the last part of the endpoint's path.
		godo.SetBaseURL(strings.TrimSuffix(endpoint.String(), "/")+"/"),
		godo.SetUserAgent(userAgent),
	)
	if err != nil {
		return nil, backends.Errorf(backends.InvalidConfig, "The account's endpoint is not usable.").At(attribute, "endpoint")
	}
	c := &Client{api: api, tags: tagNames{tagPrefix}, regions: regions}
	c.catalog = &backends.Cached[*catalog]{Lifetime: catalogLifetime, Fetch: c.fetchCatalog}
	c.images = newImageCache(c)
	c.shareOptions = &backends.Cached[*godo.NfsOptions]{Lifetime: catalogLifetime, Fetch: shares{c}.fetchOptions}
	c.keys = &backends.Cached[map[string]bool]{Lifetime: catalogLifetime, Fetch: c.fetchKeys}
	c.referred = &backends.CachedByKey[referred, found]{Lifetime: catalogLifetime, Fetch: c.fetchReferred}
	return c, nil
}

// Prove lists one Droplet. A token that is wrong fails, and one whose scopes don't
// hold Droplets; whether it may write shows only when it does.
func (c *Client) Prove(ctx context.Context) error {
	_, err := call(ctx, c, backends.Idempotent, "Checking the token",
		request{method: http.MethodGet, path: "v2/droplets", query: url.Values{"per_page": {"1"}}},
		func(p *page) bool { return p.Meta != nil })
	return err
}

// request is one request: a path below the endpoint, without a leading slash, whose
// parts are escaped (see [at]).
type request struct {
	method string
	path   string
	query  url.Values
	body   any // nil, or what is sent as JSON
}

// at joins a path of the API and ids that belong into it.
func at(parts ...any) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		switch v := p.(type) {
		case int:
			out[i] = strconv.Itoa(v)
		case string:
			out[i] = url.PathEscape(v)
		}
	}
	return "v2/" + strings.Join(out, "/")
}

// call sends a request, again where the retry policy lets it, and decodes the
// answer's body. what says what is being done: "Deleting Droplet 4711". good tells
// whether the body holds what it must.
func call[T any](ctx context.Context, c *Client, kind backends.Call, what string, r request, good func(*T) bool) (*T, error) {
	var out *T
	err := backends.Retry(ctx, kind, func(ctx context.Context) error {
		// Fresh for each try: nothing of an earlier one stays in it.
		body := new(T)
		err := c.try(ctx, what, r, body, func() bool { return good(body) })
		if err == nil {
			out = body
		}
		return err
	})
	return out, err
}

// tell sends a request that may be sent again, and whose answer has no body, or none
// that matters.
func (c *Client) tell(ctx context.Context, what string, r request) error {
	return backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error { return c.try(ctx, what, r, nil, nil) })
}

// try sends a request once. out may be nil.
func (c *Client) try(ctx context.Context, what string, r request, out any, good func() bool) error {
	path := r.path
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	sent, err := c.api.NewRequest(ctx, r.method, path, r.body)
	if err != nil {
		return backends.Errorf(backends.ProviderError, "%s: the request can't be made.", what)
	}
	var n note
	_, err = c.api.Do(context.WithValue(ctx, noteKey{}, &n), sent, out)
	if err == nil && n.succeeded() && good != nil && !good() {
		err = errIncomplete
	}
	return failure(ctx, what, &n, err)
}

var errIncomplete = errors.New("the answer lacks what it must have")
