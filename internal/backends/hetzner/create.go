// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// nameReleaseWindow is how long a name, or a primary IP, may stay taken by a server that
// the API no longer shows: it is free only when the delete action has ended.
const nameReleaseWindow = 2 * time.Minute

// releaseWindow is a [nameReleaseWindow] from the first refusal on.
type releaseWindow struct{ until time.Time }

func (w *releaseWindow) end() time.Time {
	if w.until.IsZero() {
		w.until = time.Now().Add(backends.Scale(nameReleaseWindow))
	}
	return w.until
}

// createRequest is the body of POST /servers. The library's own has no place for
// the names of SSH keys, which the API takes as well as ids. Image and type go as
// text, which is what the API's description says; key ids as numbers, which is
// what the vendor's clients send.
type createRequest struct {
	Name             string                         `json:"name"`
	ServerType       string                         `json:"server_type"`
	Image            string                         `json:"image"`
	Location         string                         `json:"location"`
	SSHKeys          []any                          `json:"ssh_keys,omitempty"`
	UserData         string                         `json:"user_data,omitempty"`
	StartAfterCreate bool                           `json:"start_after_create"`
	Labels           map[string]string              `json:"labels"`
	Networks         []int64                        `json:"networks,omitempty"`
	Firewalls        []schema.ServerCreateFirewalls `json:"firewalls,omitempty"`
	PlacementGroup   int64                          `json:"placement_group,omitempty"`
	PublicNet        *schema.ServerCreatePublicNet  `json:"public_net,omitempty"`
}

// createAnswer leaves the root password where it is.
type createAnswer struct {
	Server schema.Server `json:"server"`
}

// MakeMachine implements [backends.Backend]: one POST when catalog and image were
// read before. Networks with addresses of their own and backups have no place in
// it; see [Client.FinishMachine]. A server that still needs them isn't started.
func (c *Client) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	what := "Creating server " + spec.Name
	if issues := c.CheckForm(spec); len(issues) > 0 {
		return backends.Machine{}, issues[0]
	}
	body, err := c.createBody(ctx, spec)
	if err != nil {
		return backends.Machine{}, err
	}

	var made *hcloud.Server
	var window releaseWindow
	err = backends.Retry(ctx, backends.Making, func(ctx context.Context) error {
		var answered createAnswer
		answer, err := send(ctx, c.api, http.MethodPost, "/servers", body, &answered)
		if err == nil && succeeded(answer) && answered.Server.ID <= 0 {
			err = errNoObject
		}
		err = failure(ctx, what, answer, err)
		switch {
		case err == nil:
			made = hcloud.ServerFromSchema(answered.Server)
			return nil
		case isNameTaken(err):
			return nameTaken(ctx, "server", err, window.end(), func(ctx context.Context) (*backends.About, error) {
				return c.byName(ctx, spec.Name)
			})
		case hasAPICode(err, codePrimaryIPAssigned):
			return c.addressTaken(ctx, spec, err, window.end())
		default:
			return c.explain(ctx, err, spec)
		}
	})
	if err != nil {
		return backends.Machine{}, err
	}
	return c.machine(made), nil
}

// createBody resolves names against the catalog and fills in the request.
func (c *Client) createBody(ctx context.Context, spec backends.MachineSpec) (*createRequest, error) {
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	// Only what makes the request impossible is refused: whether there is room is
	// for the cloud to say, the catalog may be minutes old.
	t := catalog.types[spec.Offer]
	if t == nil {
		_, _, _, issue := catalog.check(spec.Offer, "")
		if issue == nil {
			issue = backends.Errorf(backends.InvalidInput, "An offer is required.").At("offer")
		}
		return nil, issue
	}
	image, _, issue, err := c.resolveImage(ctx, spec.Image, t)
	if err != nil {
		return nil, err
	}
	if issue != nil {
		return nil, issue
	}
	userData, err := spec.CloudInit()
	if err != nil {
		return nil, err
	}
	marks := spec.Marks
	marks.Complete = false
	body := &createRequest{
		Name: spec.Name, ServerType: t.Name, Image: image, Location: spec.Region,
		UserData: string(userData), Labels: c.marks.write(spec.Labels, marks),
		PublicNet: publicNet(spec.Options),
	}
	if err := body.addOptions(spec); err != nil {
		return nil, err
	}
	return body, nil
}

// addOptions fills in what comes from the machine's options.
func (r *createRequest) addOptions(spec backends.MachineSpec) error {
	for _, key := range spec.Options.Strings("ssh_key_ids") {
		if id, ok := parseID(key); ok {
			r.SSHKeys = append(r.SSHKeys, id)
		} else {
			r.SSHKeys = append(r.SSHKeys, key)
		}
	}
	for i, firewall := range spec.Options.Strings("firewall_ids") {
		id, err := optionID(firewall, "firewall_ids", i)
		if err != nil {
			return err
		}
		r.Firewalls = append(r.Firewalls, schema.ServerCreateFirewalls{Firewall: id})
	}
	if group := spec.Options.String("placement_group_id"); group != "" {
		id, err := optionID(group, "placement_group_id")
		if err != nil {
			return err
		}
		r.PlacementGroup = id
	}
	now, later, err := networksOf(spec)
	if err != nil {
		return err
	}
	for _, n := range now {
		r.Networks = append(r.Networks, n.id)
	}
	// A first boot without its networks would configure the guest without them.
	r.StartAfterCreate = spec.Start && len(later) == 0
	return nil
}

func optionID(value string, path ...any) (int64, error) {
	id, ok := parseID(value)
	if !ok {
		return 0, backends.Errorf(backends.InvalidInput, "%s", checkID(value)).At(append([]any{attribute}, path...)...)
	}
	return id, nil
}

// publicNet is nil when the options say nothing. Otherwise both flags are sent:
// the library's zero value would mean "no addresses".
func publicNet(options backends.Values) *schema.ServerCreatePublicNet {
	var saysAny bool
	wish := func(f family) (enabled bool, id int64) {
		id, on, says := f.wished(options)
		saysAny = saysAny || says
		return on || !says, id
	}
	var out schema.ServerCreatePublicNet
	out.EnableIPv4, out.IPv4ID = wish(families()[0])
	out.EnableIPv6, out.IPv6ID = wish(families()[1])
	if !saysAny {
		return nil
	}
	return &out
}

// isNameTaken tells whether a create was refused for the server's name. Older
// answers name no field; a server has no other unique one.
func isNameTaken(err error) bool {
	if !hasAPICode(err, codeUniqueness) {
		return false
	}
	fields, ok := backends.AsError(err).Details["fields"].(map[string]string)
	_, named := fields["name"]
	return !ok || named
}

// nameTaken finds who holds a name, as a [backends.NameTaken]. A holder that is
// being deleted, or is no longer shown, will let go of the name: that is waited
// for, until deadline. noun is what the API calls such objects.
func nameTaken(ctx context.Context, noun string, refusal error, deadline time.Time,
	find func(context.Context) (*backends.About, error)) error {
	holder, err := find(ctx)
	if err != nil {
		// Nothing was made; the look-up's own failure must not read as "perhaps".
		return fmt.Errorf("%w (looking for its holder failed: %w)", plain(refusal), err)
	}
	if holder != nil && holder.State != backends.StateDeleting {
		return &backends.NameTaken{Holder: *holder}
	}
	e := plain(refusal)
	if time.Now().Before(deadline) {
		e.Reason, e.Retryable = backends.ReasonLocked, true
	} else {
		e.Remedy = fmt.Sprintf("The API shows no %s of that name that isn't being deleted: look for it in the Hetzner Console, or choose another name.", noun)
	}
	return e
}

// plain is a copy of the error that can be changed.
func plain(err error) *backends.Error {
	e := *backends.AsError(err)
	return &e
}

// explain adds to a refused create what only the wish tells.
func (c *Client) explain(ctx context.Context, err error, spec backends.MachineSpec) error {
	e := backends.AsError(err)
	if e == nil {
		return err
	}
	out := *e
	switch {
	case e.Code == backends.NotFound:
		// The server doesn't exist yet: something it names doesn't.
		out.Code, out.Reason = backends.ProviderError, backends.ReasonInvalid
		out.Remedy = "Check the ids of networks, firewalls, primary IPs, SSH keys and the placement group: they must be of the account's project."
	case e.Reason == backends.ReasonCapacity:
		out.Message = fmt.Sprintf("%s The server type %s can't be had in %s now.", e.Message, spec.Offer, spec.Region)
		out.Remedy = "Try again later, or choose another offer or region."
		if catalog, err := c.catalog.Get(ctx); err == nil {
			if t := catalog.types[spec.Offer]; t != nil {
				if names := catalog.alternativesTo(t, spec.Region); len(names) > 0 {
					out.Remedy = fmt.Sprintf("Try again later, or choose another offer or region: in %s, %s.", spec.Region, backends.Choice(names))
				}
			}
		}
	}
	return &out
}
