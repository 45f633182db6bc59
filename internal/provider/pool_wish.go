// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// poolWish is a pool as a configuration or plan asks for it.
type poolWish struct {
	name, account string
	nameKnown     bool
	accountKnown  bool
	adopt         bool
	limits        reference.Limits
	keysKnown     bool // adopt and limits
}

// readPool reads a pool and returns everything that is wrong with what is known.
func readPool(values backends.Values) (poolWish, []*backends.Error) {
	w := poolWish{
		name: values.String("name"), nameKnown: values.Has("name"),
		account: values.String("provider_account"), accountKnown: values.Has("provider_account"),
		adopt: values.Bool("adopt"),
	}
	var issues []*backends.Error
	if problem := reference.PoolNameProblem(w.name); w.nameKnown && problem != "" {
		issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("name"))
	}
	limits := values.Object("limits")
	w.keysKnown = !backends.IsUnknown(values["adopt"]) && !backends.IsUnknown(values["limits"]) && limits.AllKnown()
	var problems []*backends.Error
	w.limits, problems = readLimits(limits)
	return w, append(issues, problems...)
}

func readLimits(limits backends.Values) (out reference.Limits, issues []*backends.Error) {
	whole := func(name string) *int64 {
		if !limits.Has(name) {
			return nil
		}
		if problem := counts.problem("limits."+name, bigFloat(limits[name])); problem != "" {
			issues = append(issues, backends.Errorf(backends.InvalidInput, "%s", problem).At("limits", name).
				WithRemedy("Write a whole number, or leave it out for no limit; 0 lets nothing be made."))
			return nil
		}
		n := limits.Int(name)
		return &n
	}
	out.Instances, out.DiskGiB = whole("instances"), whole("disk_gib")
	if price := exact(limits["price_per_hour"]); price != nil {
		text, err := reference.PriceText(price)
		if err != nil {
			issues = append(issues, backends.AsError(err).At("limits", "price_per_hour"))
		}
		out.PricePerHour = text
	}
	return out, issues
}

// exact is a number of a tree as the decimal that its writer meant: the shortest
// that reads as the same number. nil when there is none.
func exact(value any) *big.Rat {
	switch x := value.(type) {
	case int64:
		return new(big.Rat).SetInt64(x)
	case float64:
		if r, ok := new(big.Rat).SetString(strconv.FormatFloat(x, 'f', -1, 64)); ok {
			return r
		}
	}
	return nil
}

// importedLimits are a uri's limits as the attribute; null when there are none.
func importedLimits(typ tftypes.Type, limits reference.Limits) (tftypes.Value, error) {
	tree := backends.Values{}
	if limits.Instances != nil {
		tree["instances"] = *limits.Instances
	}
	if limits.DiskGiB != nil {
		tree["disk_gib"] = *limits.DiskGiB
	}
	if limits.PricePerHour != "" {
		price, ok := parseDecimal(limits.PricePerHour)
		if !ok {
			return tftypes.Value{}, fmt.Errorf("limits.price_per_hour: %q is no decimal", limits.PricePerHour)
		}
		tree["price_per_hour"] = price
	}
	if len(tree) == 0 {
		return tftypes.NewValue(typ, nil), nil
	}
	return protocolValue(typ, tree)
}
