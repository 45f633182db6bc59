// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// "What the provider would refuse before any request is refused here": every rule of
// providerVolumes.create that the plan can see, without a call that changes anything.
func TestVolumeInputsAreRefusedAtPlanTime(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"name":                 {[]string{`name = "Data_1"`}, `INVALID_INPUT: .*volume name`},
		"name's length":        {[]string{`name = "` + strings.Repeat("a", 43) + `"`}, `INVALID_INPUT: .*volume name`},
		"description":          {[]string{`description = "` + strings.Repeat("a", 257) + `"`}, `INVALID_INPUT: .*description`},
		"size 0":               {[]string{`size_gib = 0`}, `INVALID_INPUT: .*1 to 16384`},
		"size too large":       {[]string{`size_gib = 16385`}, `INVALID_INPUT: .*1 to 16384`},
		"a fraction":           {[]string{`size_gib = 10.5`}, `INVALID_INPUT: .*whole number`},
		"the cloud's size":     {[]string{`size_gib = 9`}, `INVALID_INPUT: .*10`},
		"kind":                 {[]string{`kind = "nfs"`}, `INVALID_INPUT: .*kind`},
		"filesystem":           {[]string{`filesystem = "zfs"`}, `INVALID_INPUT: .*filesystem`},
		"network of a block":   {[]string{`network_id = "4711"`}, `INVALID_INPUT: .*network_id`},
		"shared on Hetzner":    {[]string{`kind = "shared"`, `network_id = "4711"`}, `(?s)UNSUPPORTED: .*no shared volumes.*sharedVolumes`},
		"snapshots on Hetzner": {[]string{`from_snapshot = "hetzner-cloud://root/main/web/volumes/old/snapshots/first?token=env://` + tokenVariable + `"`}, `(?s)UNSUPPORTED: .*snapshots`},
		"a volume for a snapshot": {
			[]string{`from_snapshot = "` + volumeURI + `"`}, `(?s)INVALID_INPUT: .*from_snapshot.*uri\s+of\s+a\s+volume`,
		},
		"another account's snapshot": {
			[]string{`from_snapshot = "hetzner-cloud://root/other/web/volumes/old/snapshots/first?token=env://` + tokenVariable + `"`},
			`(?s)INVALID_INPUT: .*another\s+account`,
		},
		"a null instance": {[]string{`instances = [null]`}, `INVALID_INPUT: .*null`},
		"region":          {[]string{`region = "nowhere"`}, `INVALID_INPUT: .*nowhere`},
		"a pool's id":     {[]string{`pool = bettercompute_pool.web.id`}, `INVALID_INPUT: .*pool`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			resource.ParallelTest(t, resource.TestCase{
				ProtoV6ProviderFactories: w.factories(),
				Steps: []resource.TestStep{
					{Config: w.volume(test.lines...), PlanOnly: true, ExpectError: regexp.MustCompile(test.want)},
					{Config: w.pool()},
					check(w.untouched),
				},
			})
		})
	}
}
