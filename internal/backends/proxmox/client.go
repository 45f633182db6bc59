// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// catalogLifetime is how long the nodes' room and templates are believed.
const catalogLifetime = 10 * time.Minute

// Client is one cluster.
type Client struct {
	http      *http.Client
	base      string // the API's base, without a trailing slash
	userAgent string
	account   settings
	snippets  snippetStore // nil: user data can't be handed over

	// guests and nodes are the cluster's lists, room the nodes as offers need them.
	guests *fresh[guests]
	nodes  *fresh[[]nodeRow]
	room   *backends.Cached[[]nodeRow]
	// storages are the cluster's, as far as the token sees them.
	storages *backends.Cached[[]storageRow]
	// pools are its resource pools, bridges those of each node, and allowed what the token
	// may do by paths, all as far as the token may know.
	pools   *backends.Cached[[]string]
	bridges *backends.CachedByKey[string, []string]
	allowed *backends.CachedByKey[string, privileges]
	// ready tells that the place of snippets can be written to.
	ready *backends.Cached[bool]
	// templates are options of templates, by VMID.
	templates *backends.CachedByKey[int, *vm]
	// tasks are the newest tasks of nodes.
	tasks *backends.CachedByKey[string, map[string]taskRow]

	mu sync.Mutex
	// places is where VMs were last, halfMade what half-made VMs say that no list tells
	// from strangers': see [Client.ListMachines].
	places   map[int]string
	halfMade map[int]note
	// hidden are VMIDs that something has which the token doesn't see.
	hidden map[int]bool
	// told are agents' answers that nobody has asked for again yet.
	told map[string]told
	// warned: that the agent can't be asked was said once.
	warned bool
}

// withSnippets is a client of an account that can hand user data to guests.
type withSnippets struct{ *Client }

var (
	_ backends.Backend             = (*Client)(nil)
	_ backends.Finisher            = (*Client)(nil)
	_ backends.Lister              = (*Client)(nil)
	_ backends.Powerer             = (*Client)(nil)
	_ backends.Reinstaller         = (*Client)(nil)
	_ backends.Remaker             = (*Client)(nil)
	_ backends.Protector           = (*Client)(nil)
	_ backends.Addresser           = (*Client)(nil)
	_ backends.Editor              = (*Client)(nil)
	_ backends.Resizer             = (*Client)(nil)
	_ backends.OnePerKey           = (*Client)(nil)
	_ backends.ReusedIDs           = (*Client)(nil)
	_ backends.UserDataReinstaller = (*withSnippets)(nil)
	_ backends.Sweeper             = (*withSnippets)(nil)
)

func newClient(endpoint *url.URL, transport http.RoundTripper, userAgent string, account settings) *Client {
	c := &Client{
		http: backends.NewClient(transport), base: endpoint.String() + "/api2/json", userAgent: userAgent, account: account,
		places: map[int]string{}, halfMade: map[int]note{}, hidden: map[int]bool{}, told: map[string]told{},
	}
	c.guests = &fresh[guests]{fetch: c.fetchGuests}
	c.nodes = &fresh[[]nodeRow]{fetch: c.fetchNodes}
	c.room = &backends.Cached[[]nodeRow]{Lifetime: catalogLifetime, Fetch: c.fetchNodes}
	c.storages = &backends.Cached[[]storageRow]{Lifetime: catalogLifetime, Fetch: c.fetchStorages}
	c.pools = &backends.Cached[[]string]{Lifetime: catalogLifetime, Fetch: c.fetchPools}
	c.bridges = &backends.CachedByKey[string, []string]{Lifetime: catalogLifetime, Fetch: c.fetchBridges}
	c.allowed = &backends.CachedByKey[string, privileges]{Lifetime: catalogLifetime, Fetch: c.fetchPrivileges}
	c.ready = &backends.Cached[bool]{Lifetime: catalogLifetime, Fetch: func(ctx context.Context) (bool, error) {
		return true, c.snippets.probe(ctx)
	}}
	c.templates = &backends.CachedByKey[int, *vm]{Lifetime: catalogLifetime, Fetch: c.fetchTemplate}
	// A task list serves all who poll at about the same time.
	c.tasks = &backends.CachedByKey[string, map[string]taskRow]{Lifetime: backends.Scale(account.poll / 4), Fetch: c.fetchTasks}
	return c
}

// IDsAreReused implements [backends.ReusedIDs]: a VMID is free again once its VM is
// gone.
func (c *Client) IDsAreReused() {}

// OnePerKey implements [backends.OnePerKey]: a key is a VMID, and the cluster makes
// one VM of a VMID.
func (c *Client) OnePerKey() {}

// Prove asks for the version, which every valid token may.
func (c *Client) Prove(ctx context.Context) error {
	type version struct {
		Version string `json:"version"`
	}
	_, err := call(ctx, c, backends.Idempotent, "Checking the token", request{http.MethodGet, at("version"), nil},
		func(v version) bool { return v.Version != "" })
	return err
}
