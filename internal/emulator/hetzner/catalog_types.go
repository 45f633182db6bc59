// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"slices"
	"strings"
	"time"
)

// tib is the unit of included traffic, in bytes.
const tib = 1 << 40

// typeRow is a server type with its net prices per hour and month; those
// overseas are for the American locations and Singapore.
type typeRow struct {
	id     int64
	name   string
	cores  int
	memory float64
	disk   int
	// hourly and monthly are prices in the European locations, overseas and
	// overseasMonthly in the others.
	hourly, monthly           string
	overseas, overseasMonthly string
	// where is the locations that offer it.
	where string
}

const (
	europe    = "fsn1 nbg1 hel1"
	abroad    = "ash hil sin"
	worldwide = europe + " " + abroad
)

// typeRows are modelled on the real offer of autumn 2026; prices are of their
// order, not exact.
func typeRows() []typeRow {
	return []typeRow{
		{22, "cpx11", 2, 2, 40, "0.0070", "4.35", "0.0080", "4.99", worldwide},
		{23, "cpx21", 3, 4, 80, "0.0120", "7.55", "0.0144", "8.99", "nbg1 hel1 ash hil"},
		{24, "cpx31", 4, 8, 160, "0.0216", "13.60", "0.0272", "16.99", abroad},
		{25, "cpx41", 8, 16, 240, "0.0408", "25.20", "0.0505", "31.49", abroad},
		{26, "cpx51", 16, 32, 360, "0.0888", "54.90", "0.1114", "69.49", abroad},
		{45, "cax11", 2, 4, 40, "0.0061", "3.79", "", "", europe},
		{93, "cax21", 4, 8, 80, "0.0104", "6.49", "", "", europe},
		{94, "cax31", 8, 16, 160, "0.0200", "12.49", "", "", europe},
		{95, "cax41", 16, 32, 320, "0.0393", "24.49", "", "", europe},
		{96, "ccx13", 2, 8, 80, "0.0200", "12.49", "0.0224", "13.99", worldwide},
		{97, "ccx23", 4, 16, 160, "0.0392", "24.49", "0.0441", "27.49", worldwide},
		{98, "ccx33", 8, 32, 240, "0.0777", "48.49", "0.0874", "54.49", worldwide},
		{99, "ccx43", 16, 64, 360, "0.1546", "96.49", "0.1739", "108.49", worldwide},
		{100, "ccx53", 32, 128, 600, "0.3085", "192.49", "0.3470", "216.49", europe + " ash hil"},
		{101, "ccx63", 48, 192, 960, "0.4623", "288.49", "0.5200", "324.49", europe + " ash"},
		{104, "cx22", 2, 4, 40, "0.0060", "3.79", "", "", europe},
		{108, "cpx12", 1, 2, 40, "0.0104", "6.49", "", "", europe},
		{109, "cpx22", 2, 4, 80, "0.0104", "6.49", "", "", europe},
		{110, "cpx32", 4, 8, 160, "0.0176", "10.99", "", "", europe},
		{111, "cpx42", 8, 16, 320, "0.0320", "19.99", "", "", europe},
		{112, "cpx52", 12, 24, 480, "0.0456", "28.49", "", "", europe},
		{113, "cpx62", 16, 32, 640, "0.0617", "38.49", "", "", europe},
		{114, "cx23", 2, 4, 40, "0.0056", "3.49", "", "", europe},
		{115, "cx33", 4, 8, 80, "0.0088", "5.49", "", "", europe},
		{116, "cx43", 8, 16, 160, "0.0152", "9.49", "", "", europe},
		{117, "cx53", 16, 32, 320, "0.0280", "17.49", "", "", europe},
	}
}

// serverTypes makes the catalog of types. What isn't plain about it:
//   - cx22 is deprecated everywhere, and can be had for three months yet;
//   - cpx11 has come to its end in fsn1, and only there;
//   - cax41 is out of stock in hel1;
//   - cpx21 has a price in sin, where it is not offered.
func (c *catalog) serverTypes(now time.Time) []wireServerType {
	day := now.UTC().Truncate(24 * time.Hour)
	ending := &wireDeprecation{Announced: stamp(day.AddDate(0, 0, -60)), UnavailableAfter: stamp(day.AddDate(0, 3, 0))}
	ended := &wireDeprecation{Announced: stamp(day.AddDate(0, -6, 0)), UnavailableAfter: stamp(day.AddDate(0, 0, -30))}

	var types []wireServerType
	for _, row := range typeRows() {
		t := wireServerType{
			ID:           row.id,
			Name:         row.name,
			Description:  strings.ToUpper(row.name),
			Category:     "regular_performance",
			Cores:        row.cores,
			Memory:       row.memory,
			Disk:         row.disk,
			StorageType:  "local",
			CPUType:      "shared",
			Architecture: "x86",
			Prices:       []wireTypePrice{},
			Locations:    []wireTypeLocation{},
		}
		switch {
		case strings.HasPrefix(row.name, "ccx"):
			t.Category, t.CPUType = "general_purpose", "dedicated"
		case strings.HasPrefix(row.name, "cax"):
			t.Category, t.Architecture = "cost_optimized", "arm"
		case strings.HasPrefix(row.name, "cx"):
			t.Category = "cost_optimized"
		}
		where := strings.Fields(row.where)
		for _, l := range c.locations {
			if slices.Contains(where, l.Name) {
				t.Locations = append(t.Locations, typeLocation(row.name, l, ending, ended))
			}
			if slices.Contains(where, l.Name) || row.name == "cpx21" && l.Name == "sin" {
				t.Prices = append(t.Prices, c.typePrice(row, l))
			}
		}
		if row.name == "cx22" {
			t.Deprecated, t.Deprecation = true, ending
		}
		types = append(types, t)
	}
	return types
}

func typeLocation(name string, l wireLocation, ending, ended *wireDeprecation) wireTypeLocation {
	at := wireTypeLocation{ID: l.ID, Name: l.Name, Available: true, Recommended: strings.HasSuffix(name, "3")}
	switch {
	case name == "cx22":
		at.Deprecation, at.Recommended = ending, false
	case name == "cpx11" && l.Name == "fsn1":
		at.Deprecation, at.Available = ended, false
	case name == "cax41" && l.Name == "hel1":
		at.Available = false
	}
	return at
}

func (c *catalog) typePrice(row typeRow, l wireLocation) wireTypePrice {
	hourly, monthly, traffic, perTB := row.hourly, row.monthly, int64(20*tib), "1.00"
	if l.NetworkZone != "eu-central" {
		hourly, monthly, traffic = row.overseas, row.overseasMonthly, tib
	}
	if l.Name == "sin" {
		perTB = "7.40"
	}
	return wireTypePrice{
		Location:          l.Name,
		PriceHourly:       c.price(hourly),
		PriceMonthly:      c.price(monthly),
		IncludedTraffic:   traffic,
		PricePerTBTraffic: c.price(perTB),
	}
}
