// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"fmt"
	"net/http"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// MakeMachine implements [backends.Backend]: one POST when catalog and image were
// read before. Names aren't unique here, so there is no [backends.NameTaken]. A
// Droplet always starts; with spec.Start false the caller stops it.
func (c *Client) MakeMachine(ctx context.Context, spec backends.MachineSpec) (backends.Machine, error) {
	if issues := c.CheckForm(spec); len(issues) > 0 {
		return backends.Machine{}, issues[0]
	}
	body, err := c.createBody(ctx, spec)
	if err != nil {
		return backends.Machine{}, err
	}
	answer, err := call(ctx, c, backends.Making, "Creating Droplet "+spec.Name,
		request{method: http.MethodPost, path: at("droplets"), body: body},
		func(a *dropletAnswer) bool { return a.Droplet != nil && a.Droplet.ID > 0 })
	if err != nil {
		return backends.Machine{}, c.explain(ctx, err, spec)
	}
	m := c.machine(answer.Droplet)
	if m.Marks.Claim == "" {
		// An answer that came before the tags did: they are what was asked for.
		m.Marks, m.Labels = c.tags.read(body.Tags), c.tags.labels(body.Tags)
	}
	return m, nil
}

// createBody resolves names against the catalog and fills in the request.
func (c *Client) createBody(ctx context.Context, spec backends.MachineSpec) (*godo.DropletCreateRequest, error) {
	catalog, err := c.catalog.Get(ctx)
	if err != nil {
		return nil, err
	}
	// Only what makes the request impossible is refused: whether there is room is
	// for the cloud to say, the catalog may be minutes old.
	size := catalog.sizes[spec.Offer]
	if size == nil {
		_, _, issue := catalog.check(spec.Offer, "")
		if issue == nil {
			issue = backends.Errorf(backends.InvalidInput, "An offer is required.").At("offer")
		}
		return nil, issue
	}
	if !catalog.allows(spec.Region) {
		_, _, issue := catalog.check(spec.Offer, spec.Region)
		return nil, issue
	}
	_, issue, err := c.resolveImage(ctx, spec.Image, size, spec.Region)
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
	body := &godo.DropletCreateRequest{
		Name: spec.Name, Region: spec.Region, Size: spec.Offer, Image: imageOf(spec.Image),
		UserData: string(userData), VPCUUID: spec.Network,
		Tags:       append(c.tags.write(marks), foreign(spec.Labels, spec.Options.Strings("tags"))...),
		SSHKeys:    []godo.DropletCreateSSHKey{}, // not null
		Backups:    spec.Options.Bool("backups"),
		IPv6:       spec.Options.Bool("ipv6"),
		Monitoring: spec.Options.Bool("monitoring"),
	}
	for _, key := range spec.Options.Strings("ssh_key_ids") {
		if id, ok := parseID(key); ok {
			body.SSHKeys = append(body.SSHKeys, godo.DropletCreateSSHKey{ID: id})
		} else {
			body.SSHKeys = append(body.SSHKeys, godo.DropletCreateSSHKey{Fingerprint: key})
		}
	}
	if spec.Options.Has("droplet_agent") {
		agent := spec.Options.Bool("droplet_agent")
		body.WithDropletAgent = &agent
	}
	body.BackupPolicy = policyOf(spec.Options)
	return body, nil
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
		// The Droplet doesn't exist yet: something it names doesn't.
		out.Code, out.Reason = backends.ProviderError, backends.ReasonInvalid
		out.Remedy = "Check the image, network_id and ssh_key_ids: they must be of the account's team."
	case e.Reason == backends.ReasonCapacity:
		out.Message = fmt.Sprintf("%s The size %s can't be had in %s now.", e.Message, spec.Offer, spec.Region)
		out.Remedy = "Try again later, or choose another offer or region."
		if catalog, err := c.catalog.Get(ctx); err == nil {
			if size := catalog.sizes[spec.Offer]; size != nil {
				if names := catalog.alternativesTo(size, spec.Region); len(names) > 0 {
					out.Remedy = fmt.Sprintf("Try again later, or choose another offer or region: in %s, %s.", spec.Region, backends.Choice(names))
				}
			}
		}
	}
	return &out
}
