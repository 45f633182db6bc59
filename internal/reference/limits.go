// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reference

import (
	"math/big"
	"regexp"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The keys of a pool that stand in its own uri only.
const (
	keyAdopt     = "pool.adopt"
	keyInstances = "pool.limits.instances"
	keyDiskGiB   = "pool.limits.disk_gib"
	keyPrice     = "pool.limits.price_per_hour"
)

var poolKeys = []string{keyAdopt, keyDiskGiB, keyInstances, keyPrice}

// Limits bound what a pool may hold (DESIGN.md §5). What is unset is unlimited; 0
// lets nothing be made.
type Limits struct {
	Instances *int64
	DiskGiB   *int64 // of volumes, growth included
	// PricePerHour is a decimal without leading or trailing zeros, in the cloud's
	// currency, as [PriceText] writes it; "" is unset.
	PricePerHour string
}

// Price is PricePerHour as an exact number; nil when unset.
func (l Limits) Price() *big.Rat {
	if l.PricePerHour == "" {
		return nil
	}
	r, ok := new(big.Rat).SetString(l.PricePerHour)
	if !ok {
		return nil
	}
	return r
}

// priceForm has bounds that keep a uri short: 18 digits on either side.
var priceForm = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,17}[1-9])?$`)

const priceDigits = 18

// PriceText is the one spelling of a price. It fails with INVALID_INPUT for a
// negative number and for one with more than 18 digits before or after the point.
func PriceText(price *big.Rat) (string, error) {
	digits, exact := price.FloatPrec()
	text := price.FloatString(digits)
	if !exact || digits > priceDigits || !priceForm.MatchString(text) {
		return "", backends.Errorf(backends.InvalidInput, "price_per_hour is a decimal number that is not negative, with at most 18 digits before and after the point.")
	}
	return text, nil
}

// setPoolKey reads one key of a pool's uri.
func (r *Reference) setPoolKey(key, value string) *backends.Error {
	switch key {
	case keyAdopt:
		b, ok := parseBool(value)
		if !ok {
			return badPart(keyName(key), "It is true or false.")
		}
		r.Adopt = b
	case keyInstances, keyDiskGiB:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return badPart(keyName(key), "It is a whole number that is not negative.")
		}
		if key == keyInstances {
			r.Limits.Instances = &n
		} else {
			r.Limits.DiskGiB = &n
		}
	case keyPrice:
		if !priceForm.MatchString(value) {
			return badPart(keyName(key), "It is a decimal number such as 0.5, without zeros at either end.")
		}
		r.Limits.PricePerHour = value
	default:
		return unknownKey(key, poolKeys)
	}
	return nil
}
