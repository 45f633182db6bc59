// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func catalogCases() []Case {
	return []Case{
		{
			Name:  "offers/well-formed",
			About: "Every offer has an id, a kind that the definition provides, a region and a size; a price and its currency come together; no offer comes twice for a region.",
			Run:   offersWellFormed,
		},
		{
			Name:  "offers/subject",
			About: "The offers of the subject's region include the subject's offer, available, and nothing of another region.",
			Run:   offersIncludeSubject,
		},
		{
			Name:  "offers/impossible",
			About: "A query that nothing can meet selects nothing.",
			Run: func(ctx context.Context, t *Trial) error {
				offers, err := t.Backend.Offers(ctx, backends.OfferQuery{MinVCPU: 1_000_000})
				if err == nil && len(offers) > 0 {
					err = wrong("there are %d offers with a million CPUs, such as %s", len(offers), offers[0].ID)
				}
				return err
			},
		},
		{
			Name:  "check/subject",
			About: "CheckMachine accepts the subject's offer and image and resolves both.",
			Vital: true,
			Run:   checkAcceptsSubject,
		},
		{
			Name:  "check/unknown",
			About: "CheckMachine passes over what a plan doesn't know yet.",
			Run: func(ctx context.Context, t *Trial) error {
				_, issues, err := t.Backend.CheckMachine(ctx, backends.MachineSpec{Marks: t.Wish(0).Spec.Marks})
				return errors.Join(err, noIssues("nothing known", issues))
			},
		},
		{
			Name:  "check/offer",
			About: "CheckMachine refuses an unknown offer with an issue that points at offer.",
			Run: func(ctx context.Context, t *Trial) error {
				spec := t.Wish(0).Spec
				spec.Offer = "no-such-offer"
				return t.refuses(ctx, spec, "offer")
			},
		},
		{
			Name:  "check/image",
			About: "CheckMachine refuses an unknown image with an issue that points at image.",
			Run: func(ctx context.Context, t *Trial) error {
				spec := t.Wish(0).Spec
				spec.Image = "no-such-image"
				return t.refuses(ctx, spec, "image")
			},
		},
		{
			Name:  "check/all",
			About: "CheckMachine reports everything that is wrong at once.",
			Run: func(ctx context.Context, t *Trial) error {
				spec := t.Wish(0).Spec
				spec.Offer, spec.Image = "no-such-offer", "no-such-image"
				return t.refuses(ctx, spec, "offer", "image")
			},
		},
	}
}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

func offersWellFormed(ctx context.Context, t *Trial) error {
	offers, err := t.Backend.Offers(ctx, backends.OfferQuery{})
	if err != nil {
		return err
	}
	var problems []error
	seen := map[[2]string]bool{}
	for _, o := range offers {
		for _, problem := range offerProblems(o, t.Subject.Account.Definition().Provides) {
			problems = append(problems, wrong("the offer %q in %q %s", o.ID, o.Region, problem))
		}
		if at := [2]string{o.ID, o.Region}; seen[at] {
			problems = append(problems, wrong("the offer %q comes twice in %q", o.ID, o.Region))
		} else {
			seen[at] = true
		}
	}
	if len(offers) == 0 {
		return wrong("there are no offers")
	}
	return errors.Join(problems...)
}

func offerProblems(o backends.Offer, provides []backends.Kind) []string {
	var problems []string
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(o.ID != "", "has no id")
	check(slices.Contains(provides, o.Kind), fmt.Sprintf("has the kind %q, which the definition doesn't provide", o.Kind))
	check(o.Region != "", "has no region")
	check(o.VCPU > 0, "has no CPUs")
	check(o.MemoryGiB > 0, "has no memory")
	check(o.DiskGiB >= 0, "has a negative disk")
	check((o.PricePerHour == nil) == (o.Currency == ""), "has a price without a currency, or a currency without a price")
	check(o.Currency == "" || currencyForm.MatchString(o.Currency), fmt.Sprintf("has the currency %q, which is not ISO 4217", o.Currency))
	check(o.PricePerHour == nil || o.PricePerHour.Sign() >= 0, "has a negative price")
	for _, g := range o.GPUs {
		check(g.Model != "" && g.Count > 0, "has GPUs without a model or a count")
	}
	return problems
}

func offersIncludeSubject(ctx context.Context, t *Trial) error {
	offers, err := t.Backend.Offers(ctx, backends.OfferQuery{Region: t.region()})
	if err != nil {
		return err
	}
	for _, o := range offers {
		if o.Region != t.region() {
			return wrong("the offers of %s include %q of %s", t.region(), o.ID, o.Region)
		}
	}
	i := slices.IndexFunc(offers, func(o backends.Offer) bool { return o.ID == t.Offer })
	switch {
	case i < 0:
		return wrong("the %d offers of %s don't include %q", len(offers), t.region(), t.Offer)
	case !offers[i].Available:
		return wrong("the offer %q is out of stock in %s: take another for this run", t.Offer, t.region())
	}
	return nil
}

func checkAcceptsSubject(ctx context.Context, t *Trial) error {
	resolved, issues, err := t.Backend.CheckMachine(ctx, t.Wish(0).Spec)
	switch {
	case err != nil:
		return err
	case len(issues) > 0:
		return noIssues("the subject's offer and image", issues)
	case resolved.Offer == nil || resolved.Offer.ID != t.Offer || resolved.Offer.Region != t.region():
		return wrong("the subject's offer was not resolved to one of its region")
	case resolved.ImageID == "":
		return wrong("the subject's image was not resolved to an id")
	}
	return nil
}

func noIssues(what string, issues []*backends.Error) error {
	var problems []error
	for _, issue := range issues {
		problems = append(problems, wrong("with %s CheckMachine found: %w", what, issue))
	}
	return errors.Join(problems...)
}

// refuses is wrong unless the issues are INVALID_INPUT and point at the fields,
// all of them and no others.
func (t *Trial) refuses(ctx context.Context, spec backends.MachineSpec, fields ...string) error {
	_, issues, err := t.Backend.CheckMachine(ctx, spec)
	if err != nil {
		return fmt.Errorf("issues are reported, they are no error: %w", err)
	}
	pointed := map[string]bool{}
	for _, issue := range issues {
		path := issue.Path.String()
		if !slices.Contains(fields, path) {
			return wrong("an issue points at %q: %w", path, issue)
		}
		if issue.Code != backends.InvalidInput {
			return wrong("an issue must be INVALID_INPUT: %w", issue)
		}
		pointed[path] = true
	}
	for _, field := range fields {
		if !pointed[field] {
			return wrong("no issue points at %s", field)
		}
	}
	return nil
}
