// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/digitalocean/godo"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The API's words for what a Droplet has; the manifest's fields are called the same.
const (
	featureBackups = "backups"
	featureIPv6    = "ipv6"
)

func hasFeature(d *godo.Droplet, feature string) bool { return slices.Contains(d.Features, feature) }

func (e *edit) addIPv6(ctx context.Context) error {
	has := hasFeature(e.droplet, featureIPv6)
	switch {
	case !e.to.Options.Has("ipv6") || has == e.to.Options.Bool("ipv6"):
		return nil
	case has:
		backends.Warn(ctx, "ipv6 is false, but "+e.called()+" has IPv6, and DigitalOcean can't take it away.")
		return nil
	}
	return e.event(ctx, "Enabling IPv6 for "+e.called(), map[string]string{"type": "enable_ipv6"}, func(d *godo.Droplet) bool {
		return hasFeature(d, featureIPv6) && d.Networks != nil && len(d.Networks.V6) > 0
	})
}

// policyAction is the body of an action about backups.
type policyAction struct {
	Type   string                           `json:"type"`
	Policy *godo.DropletBackupPolicyRequest `json:"backup_policy,omitempty"`
}

func (e *edit) setBackups(ctx context.Context) error {
	if !e.to.Options.Has("backups") {
		return nil
	}
	policy := policyOf(e.to.Options)
	has, want := hasFeature(e.droplet, featureBackups), e.to.Options.Bool("backups")
	switch {
	case has && !want:
		return e.event(ctx, "Switching off the backups of "+e.called(), policyAction{Type: "disable_backups"},
			func(d *godo.Droplet) bool { return !hasFeature(d, featureBackups) })
	case !has && want:
		return e.event(ctx, "Switching on the backups of "+e.called(), policyAction{"enable_backups", policy},
			func(d *godo.Droplet) bool { return hasFeature(d, featureBackups) })
	case !has || policy == nil:
		return nil
	}
	what := "Changing the backup policy of " + e.called()
	now, err := e.backupPolicy(ctx, what, e.droplet.ID)
	if err != nil || follows(now, policy) {
		return err
	}
	// The Droplet doesn't show its policy: that the action has ended is what there is.
	return e.event(ctx, what, policyAction{"change_backup_policy", policy}, func(*godo.Droplet) bool { return true })
}

// policyOf is the backup policy of a wish; nil without one.
func policyOf(options backends.Values) *godo.DropletBackupPolicyRequest {
	policy := options.Object("backup_policy")
	if policy == nil {
		return nil
	}
	out := &godo.DropletBackupPolicyRequest{Plan: policy.String("plan"), Weekday: policy.String("weekday")}
	if policy.Has("hour") {
		hour := int(policy.Int("hour"))
		out.Hour = &hour
	}
	return out
}

// follows tells whether a policy is what a wish says, as far as it goes.
func follows(now *godo.DropletBackupPolicyConfig, want *godo.DropletBackupPolicyRequest) bool {
	return now != nil && now.Plan == want.Plan &&
		(want.Weekday == "" || strings.EqualFold(now.Weekday, want.Weekday)) &&
		(want.Hour == nil || now.Hour == *want.Hour)
}

type policyAnswer struct {
	Policy *struct {
		Enabled *bool                           `json:"backup_enabled"`
		Policy  *godo.DropletBackupPolicyConfig `json:"backup_policy"`
	} `json:"policy"`
}

// backupPolicy is when a Droplet's backups are made; nil when it doesn't say.
func (c *Client) backupPolicy(ctx context.Context, what string, id int) (*godo.DropletBackupPolicyConfig, error) {
	answer, err := call(ctx, c, backends.Idempotent, what, request{method: http.MethodGet, path: at("droplets", id, "backups", "policy")},
		func(a *policyAnswer) bool { return a.Policy != nil && a.Policy.Enabled != nil })
	if err != nil {
		return nil, err
	}
	return answer.Policy.Policy, nil
}
