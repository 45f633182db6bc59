// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

// getPricing answers GET /pricing. There are no load balancers here, so they
// have no prices. Floating IPs do although there are none: hcloud-go 2.52 reads
// no more kinds of primary IPs than there are of floating ones, and panics.
func getPricing(c *call) (any, error) {
	catalog := &c.s.catalog
	locationPrices := func(hourly, monthly string) []map[string]any {
		var prices []map[string]any
		for _, l := range catalog.locations {
			prices = append(prices, map[string]any{
				"location":      l.Name,
				"price_hourly":  catalog.price(hourly),
				"price_monthly": catalog.price(monthly),
			})
		}
		return prices
	}
	monthlyPrices := func(monthly string) []map[string]any {
		var prices []map[string]any
		for _, l := range catalog.locations {
			prices = append(prices, map[string]any{"location": l.Name, "price_monthly": catalog.price(monthly)})
		}
		return prices
	}
	types := []map[string]any{}
	for _, t := range catalog.types {
		if !catalog.withdrawn[t.ID] {
			types = append(types, map[string]any{"id": t.ID, "name": t.Name, "prices": t.Prices})
		}
	}
	return map[string]any{"pricing": map[string]any{
		"currency": c.s.options.Currency,
		"vat_rate": catalog.vatRate,
		"primary_ips": []map[string]any{
			{"type": "ipv4", "prices": locationPrices("0.0008", "0.50")},
			{"type": "ipv6", "prices": locationPrices("0", "0")},
		},
		"floating_ips": []map[string]any{
			{"type": "ipv4", "prices": monthlyPrices("3.00")},
			{"type": "ipv6", "prices": monthlyPrices("1.00")},
		},
		"floating_ip":         map[string]any{"price_monthly": catalog.price("3.00")},
		"image":               map[string]any{"price_per_gb_month": catalog.price("0.0110")},
		"volume":              map[string]any{"price_per_gb_month": catalog.price("0.0440")},
		"server_backup":       map[string]any{"percentage": "20.0000000000"},
		"server_types":        types,
		"load_balancer_types": []any{},
	}}, nil
}
