// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// TestOfferShown: what a VM has now shows in its offer, in a list and in a get alike.
func TestOfferShown(t *testing.T) {
	for name, test := range map[string]struct {
		offer   string
		options map[string]string
		want    string
	}{
		"as made":                 {"2c-4g-20d", nil, "2c-4g-20d"},
		"a template's larger":     {"2c-4g-2d", nil, "2c-4g-2d"},
		"that, grown":             {"2c-4g-2d", map[string]string{"scsi0": "shared:vm-1-disk-0,size=8G"}, "2c-4g-8d"},
		"more cores":              {"2c-4g-20d", map[string]string{"cores": "4"}, "4c-4g-20d"},
		"more sockets":            {"2c-4g-2d", map[string]string{"sockets": "2"}, "4c-4g-2d"},
		"less memory":             {"2c-4g", map[string]string{"memory": "2048"}, "2c-2g"},
		"odd memory":              {"2c-4g", map[string]string{"memory": "2560"}, "2c-2.50g"},
		"a larger disk":           {"2c-4g-20d", map[string]string{"scsi0": "shared:vm-1-disk-0,size=30G"}, "2c-4g-30d"},
		"a disk of an odd size":   {"2c-4g-20d", map[string]string{"scsi0": "shared:vm-1-disk-0,size=20992M"}, "2c-4g-21d"},
		"a disk that isn't asked": {"2c-4g", map[string]string{"scsi0": "shared:vm-1-disk-0,size=30G"}, "2c-4g"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{})
				spec := testSpec()
				spec.Offer = test.offer
				m := mustCreate(t, c, spec)
				for option, value := range test.options {
					cluster.SetOption(atoi(t, m.ID), option, value)
				}
				got, err := c.GetMachine(t.Context(), m.ID)
				if err != nil || got.Offer != test.want || m.Offer != test.offer {
					t.Errorf("%+v, %v", got, err)
				}
				listed, err := backends.ListAll(t.Context(), c.ListMachines, backends.Filter{})
				if err != nil || len(listed) != 1 || listed[0].Offer != test.want {
					t.Errorf("%+v, %v", listed, err)
				}
				// New marks change nothing of it.
				marks := got.Marks
				marks.Claim = "another"
				if got, err = c.MarkMachine(t.Context(), got, marks); err != nil || got.Offer != test.want {
					t.Errorf("%+v, %v", got, err)
				}
				if test.options != nil {
					return
				}
				if err := c.Reinstall(t.Context(), got, spec); err != nil {
					t.Fatal(err)
				}
				if got, err = c.GetMachine(t.Context(), m.ID); err != nil || got.Offer != test.want {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

// TestOffersNearby names what is wrong with an offer, and what may be meant.
func TestOffersNearby(t *testing.T) {
	for offer, want := range map[string]string{
		"9000c-1g": "from 1 to 8192", "1c-20000g": "from 1 to 16384", "1c-1g-200000d": "from 1 to 131072", "0c-1g": "from 1 to 8192", "1c-1g-0d": "from 1 to 131072",
		"99999999999999999999c-1g": "from 1 to 8192", "01c-1g": "zeros in front", "cx22": "is not a size", "8192c-16384g-131072d": "",
	} {
		if got := checkOffer(offer); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %s", offer, got)
		}
	}
	few := clientOf(t, &script{}, backends.Values{"offers": []any{"1c-2g-10d", "8c-32g"}})
	if got := few.near("2c-4g-50d"); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
