// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

const (
	// catalogLifetime is how long offers, images, and the existence of what a wish
	// names are believed.
	catalogLifetime = 10 * time.Minute
)

// Client is one project of Hetzner Cloud.
type Client struct {
	api     *hcloud.Client
	marks   markLabels
	catalog *backends.Cached[*catalog]
	images  *imageCache
	// referred remembers which objects exist that wishes name.
	referred *backends.CachedByKey[referred, struct{}]
}

var (
	_ backends.Backend             = (*Client)(nil)
	_ backends.Finisher            = (*Client)(nil)
	_ backends.Lister              = (*Client)(nil)
	_ backends.PhaseLister         = (*Client)(nil)
	_ backends.OnePerKey           = (*Client)(nil)
	_ backends.Powerer             = (*Client)(nil)
	_ backends.UserDataReinstaller = (*Client)(nil)
	_ backends.Protector           = (*Client)(nil)
	_ backends.Diagnoser           = (*Client)(nil)
)

func build(endpoint *url.URL, transport http.RoundTripper, userAgent, labelPrefix string) *Client {
	c := &Client{
		api: hcloud.NewClient(
			hcloud.WithEndpoint(endpoint.String()),
			hcloud.WithHTTPClient(backends.NewLimitedClient(transport)),
			hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
			hcloud.WithApplication(userAgent, ""),
		),
		marks: markLabels{prefix: labelPrefix},
	}
	c.catalog = &backends.Cached[*catalog]{Lifetime: catalogLifetime, Fetch: c.fetchCatalog}
	c.images = newImageCache(c.api)
	c.referred = &backends.CachedByKey[referred, struct{}]{Lifetime: catalogLifetime, Fetch: c.fetchReferred}
	return c
}

// Prove lists one server. A token that is wrong, or of no project, fails; whether
// it may write shows only when it does.
func (c *Client) Prove(ctx context.Context) error {
	_, err := request(ctx, backends.Idempotent, "Checking the token",
		func(ctx context.Context) ([]*hcloud.Server, *hcloud.Response, error) {
			return c.api.Server.List(ctx, hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{PerPage: 1}})
		})
	return err
}

// request sends what call sends, again where the retry policy lets it. what says
// what is being done: "Deleting server 4711".
func request[T any](ctx context.Context, kind backends.Call, what string,
	call func(context.Context) (T, *hcloud.Response, error)) (T, error) {
	var out T
	err := backends.Retry(ctx, kind, func(ctx context.Context) error {
		value, answer, err := call(ctx)
		if err := failure(ctx, what, answer, err); err != nil {
			return err
		}
		out = value
		return nil
	})
	return out, err
}

// get reads one object into body through the library's request primitive: its
// GetByID methods take every 404 for "gone", that of an unknown route too. good
// tells whether the body holds the object asked for.
func get[T any](ctx context.Context, api *hcloud.Client, what, path string, body *T, good func() bool) error {
	_, err := request(ctx, backends.Idempotent, what,
		func(ctx context.Context) (struct{}, *hcloud.Response, error) {
			answer, err := send(ctx, api, http.MethodGet, path, nil, body)
			if err == nil && succeeded(answer) && !good() {
				err = errNoObject
			}
			return struct{}{}, answer, err
		})
	return err
}

// send sends one request through the library's primitive. in may be nil. out is
// emptied first, so that nothing of an earlier try stays in it.
func send[T any](ctx context.Context, api *hcloud.Client, method, path string, in any, out *T) (*hcloud.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := api.NewRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	*out = *new(T)
	return api.Do(r, out)
}
