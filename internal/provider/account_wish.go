// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// accountWish is an account as a configuration or plan asks for it, as far as
// that is known.
type accountWish struct {
	name, tenant           string
	nameKnown, tenantKnown bool
	// cloud is nil while it isn't known which one is configured.
	cloud *backends.Definition
	// config is the cloud's attribute; nil while it isn't known.
	config backends.Values
}

// readAccount reads an account and returns what is wrong with its choice of a
// cloud. tenant stands in where the account names none.
func readAccount(registry *backends.Registry, values backends.Values, tenant string, tenantKnown bool) (accountWish, []*backends.Error) {
	w := accountWish{
		name: values.String("name"), nameKnown: values.Has("name"),
		tenant: tenant, tenantKnown: tenantKnown,
	}
	if own, set := values["tenant_id"]; set {
		w.tenant, w.tenantKnown = values.String("tenant_id"), !backends.IsUnknown(own)
	}
	var issues []*backends.Error
	w.cloud, w.config, issues = chosenCloud(registry, values)
	return w, issues
}

// chosenCloud is the cloud that is configured. One that isn't known as a whole
// may turn out to be null, so it decides nothing yet.
func chosenCloud(registry *backends.Registry, values backends.Values) (*backends.Definition, backends.Values, []*backends.Error) {
	var chosen []*backends.Definition
	var undecided bool
	var names []string
	for _, d := range registry.All() {
		names = append(names, d.Attribute())
		switch value, set := values[d.Attribute()]; {
		case !set:
		case backends.IsUnknown(value):
			undecided = true
		default:
			chosen = append(chosen, d)
		}
	}
	switch {
	case len(chosen) > 1:
		var both []string
		for _, d := range chosen {
			both = append(both, d.Attribute())
		}
		e := backends.Errorf(backends.InvalidInput, "The account configures more than one cloud: %s.", strings.Join(both, ", ")).
			WithRemedy("Keep one of them, and make an account for each of the others.")
		return nil, nil, []*backends.Error{e}
	case len(chosen) == 0 && !undecided:
		return nil, nil, []*backends.Error{backends.Errorf(backends.InvalidInput, "The account configures no cloud.").
			WithRemedy("Set exactly one of: %s.", strings.Join(names, ", "))}
	case len(chosen) == 0 || undecided:
		return nil, nil, nil
	}
	return chosen[0], values.Object(chosen[0].Attribute()), nil
}

// check returns everything that is wrong with what is known.
func (w accountWish) check() []*backends.Error {
	var issues []*backends.Error
	if w.cloud != nil {
		// What isn't known is checked as if it were right.
		tenant, name := w.tenant, w.name
		if !w.tenantKnown {
			tenant = "unknown"
		}
		if !w.nameKnown {
			name = "unknown"
		}
		_, issues = reference.NewAccount(w.cloud, tenant, name, w.config)
		return issues
	}
	if problem := reference.AccountNameProblem(w.name); w.nameKnown && problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("name"))
	}
	if problem := reference.TenantProblem(w.tenant); w.tenantKnown && problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("tenant_id"))
	}
	return issues
}

// named tells whether all that an account's id is made of is known.
func (w accountWish) named() bool { return w.nameKnown && w.tenantKnown && w.cloud != nil }

// reference is the account's reference; the wish is [accountWish.named] and right.
func (w accountWish) reference() (reference.Reference, []*backends.Error) {
	return reference.NewAccount(w.cloud, w.tenant, w.name, w.config)
}

// namedBy are the attributes that an account's id is made of.
func namedBy(registry *backends.Registry) []string {
	names := []string{"name", "tenant_id"}
	for _, d := range registry.All() {
		names = append(names, d.Attribute())
	}
	return names
}
