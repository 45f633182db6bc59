// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// "its sizeGiB (1 to 16384)", and what the cloud makes of that.
func TestVolumeSizeIsOneTo16384GiB(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		for _, size := range []int{-1, 0, 16385} {
			s.refused("out of bounds", given{"size_gib": size}, "INVALID_INPUT: ", "size_gib", "1 to 16384", "reason: size")
		}
		for _, size := range []int{s.smallest, s.largest} {
			s.accepted("a size of the cloud", given{"size_gib": size})
		}
		if s.smallest > 1 {
			s.refused("smaller than the cloud makes", given{"size_gib": s.smallest - 1}, "INVALID_INPUT: ", "10 to 10240", "reason: size")
			s.refused("larger than the cloud makes", given{"size_gib": s.largest + 1}, "INVALID_INPUT: ", "10 to 10240", "reason: size")
		}
	})
}

// name: "at most 42 characters; matches ^[a-z]([-a-z0-9]{0,40}[a-z0-9])?$".
func TestVolumeNameHasTheSpecificationsForm(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		for _, name := range []string{"", "Data", "0data", "-data", "data-", "da.ta", "da_ta", "dätä", strings.Repeat("a", 43)} {
			s.refused(name, given{"name": name}, "INVALID_INPUT: A volume name is 1 to 42")
		}
		for _, name := range []string{"a", "a0", "a-0", strings.Repeat("a", 42)} {
			s.accepted(name, given{"name": name})
		}
	})
}

// description: "at most 256 characters", of any kind.
func TestVolumeDescriptionHasAtMost256Characters(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		s.refused("257", given{"description": strings.Repeat("ä", 257)}, "INVALID_INPUT: ", "256")
		s.accepted("256", given{"description": strings.Repeat("ä", 256)})
	})
}

// "region must be one the account uses (INVALID_INPUT)".
func TestVolumeRegionIsOneTheAccountUses(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		s.refused("no region", given{"region": "mars1"}, "INVALID_INPUT: ", "mars1", s.region)
		s.accepted("any region of the cloud", given{"region": s.elsewhere})
		if s.name == "digitalocean" {
			few := strings.Replace(s.poolURI, "?region=fra1&", "?region=fra1&regions=ams3,fra1&", 1)
			s.refused("a region that the account doesn't list", given{"pool": few, "region": s.elsewhere}, "INVALID_INPUT: ", s.elsewhere)
			s.accepted("one that it lists", given{"pool": few, "region": "ams3"})
		}
	})
}

// "A pool whose provider offers no volumes is UNSUPPORTED", before any call; "a
// provider that makes no shared volumes is UNSUPPORTED (details.reason
// sharedVolumes)".
func TestVolumeOfAProviderWithoutVolumesIsUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[0], 0)
		s.refused("shared", given{"kind": "shared", "network_id": "4711"}, "UNSUPPORTED: Hetzner Cloud has no shared volumes", "reason: sharedVolumes")
		s.poolURI = "other-cloud://root/main/web"
		s.refused("block", nil, "UNSUPPORTED: Other Cloud has no volumes", "reason: volumes")
		s.refused("shared", given{"kind": "shared", "network_id": "4711"}, "UNSUPPORTED: Other Cloud has no shared volumes", "reason: sharedVolumes")
		if calls := s.calls(); len(calls) > 0 {
			t.Errorf("it took %v", calls)
		}
	})
}

// "filesystem (ext4, xfs or none) formats it at create".
func TestVolumeFilesystemFormatsItAtCreate(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.refused("another one", given{"filesystem": "btrfs"}, "INVALID_INPUT: ", "filesystem")
		for filesystem, want := range map[any]string{"ext4": "ext4", "xfs": "xfs", "none": "", nil: ""} {
			made := s.make(volumeType, given{"filesystem": filesystem})
			if v := s.one(); v.filesystem != want {
				t.Errorf("%v made %+v", filesystem, v)
			}
			s.gone(volumeType, made)
		}
	})
}

// "kind is block (the default: a disk on one instance at a time) or shared".
func TestVolumeKindIsBlockOrShared(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.refused("another kind", given{"kind": "object"}, "INVALID_INPUT: ", "kind")
		// The default is filled in by the schema, as a core does before it plans.
		if made := s.make(volumeType, nil); made.text(t, "kind") != "" && made.text(t, "kind") != "block" {
			t.Errorf("made %s", made.value)
		}
		if v := s.one(); v.name != "data" || len(s.cloud.Shares()) > 0 {
			t.Errorf("the cloud has %+v and %+v", v, s.cloud.Shares())
		}
	})
}

// "networkId on a block volume is INVALID_INPUT".
func TestVolumeNetworkOfABlockVolumeIsRefused(t *testing.T) {
	onBothClouds(t, 0, func(_ *testing.T, s *spec) {
		s.refused("a network", given{"network_id": "4711"}, "INVALID_INPUT: ", "network_id")
	})
}

// "A shared volume needs networkId, a network … with a subnet in region (INVALID_INPUT
// without one)".
func TestVolumeSharedNeedsANetworkInItsRegion(t *testing.T) {
	onShares(t, func(_ *testing.T, s *spec, vpc string) {
		s.accepted("a network of the region", s.share(vpc, nil))
		s.refused("none", s.share(vpc, given{"network_id": nil}), "INVALID_INPUT: A shared volume needs a network_id")
		s.refused("one of another region", s.share(s.cloud.AddVPC("elsewhere", "atl1"), nil), "INVALID_INPUT: ", "atl1")
		const none = "760e09ef-dc84-11e8-981e-3cfdfeaae000"
		s.refused("one that isn't there", s.share(none, nil), "INVALID_INPUT: There is no VPC "+none)
		if shares := s.cloud.Shares(); len(shares) > 0 {
			s.t.Errorf("the cloud has %+v", shares)
		}
	})
}

// "A shared volume takes no filesystem and no deleteWithInstance: true
// (INVALID_INPUT)".
func TestVolumeSharedTakesNoFilesystemAndNoDeleteWithInstance(t *testing.T) {
	onShares(t, func(_ *testing.T, s *spec, vpc string) {
		for _, filesystem := range []string{"ext4", "xfs", "none"} {
			s.refused(filesystem, s.share(vpc, given{"filesystem": filesystem}), "INVALID_INPUT: A shared volume takes no filesystem")
		}
		s.refused("delete_with_instance", s.share(vpc, given{"delete_with_instance": true}), "INVALID_INPUT: A shared volume can't go with one instance")
		s.accepted("false", s.share(vpc, given{"delete_with_instance": false}))
	})
}

// "What the provider would refuse before any request is refused here …: for example a
// DigitalOcean share under 50 GiB is INVALID_INPUT".
func TestVolumeSharedUnder50GiBIsRefusedBeforeAnyRequest(t *testing.T) {
	onShares(t, func(_ *testing.T, s *spec, vpc string) {
		s.refused("49 GiB", s.share(vpc, given{"size_gib": 49}), "INVALID_INPUT: A share of DigitalOcean has at least 50 GiB", "reason: size")
		s.accepted("50 GiB", s.share(vpc, nil))
	})
}

// "instanceId attaches it once both exist: the instance must be the tenant's, on the
// same account and region (INVALID_INPUT)": another tenant's instance is of another
// account here.
func TestVolumeInstanceIsOfTheSameAccountAndRegion(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		here := s.make(instanceType, nil)
		uri := here.text(t, "uri")
		s.refused("another account's", given{"instances": []string{strings.Replace(uri, "/root/main/", "/root/other/", 1)}}, "INVALID_INPUT: ", "another account")
		s.refused("another tenant's", given{"instances": []string{strings.Replace(uri, "/root/main/", "/blue/main/", 1)}}, "INVALID_INPUT: ", "another account")
		s.refused("of another region", given{"region": s.elsewhere, "instances": []string{uri}}, "INVALID_INPUT: ", "is in the region "+s.region)
		s.refused("one that isn't there", given{"instances": []string{strings.Replace(s.poolURI, "/web?", "/web/instances/web-9?", 1)}}, "INVALID_INPUT: ", "web-9")
		made := s.make(volumeType, given{"instances": []string{uri}})
		if v := s.one(); v.machine != here.text(t, "machine_id") || made.text(t, "state") != "ready" {
			t.Errorf("the volume is %+v, recorded %s", v, made.value)
		}
	})
}

// "… and not being deleted (INVALID_STATE)". DigitalOcean doesn't show it.
func TestVolumeInstanceThatIsBeingDeletedIsInvalidState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[0], 4*time.Minute)
		here := s.make(instanceType, nil)
		if _, _, err := s.api().Server.DeleteWithResult(t.Context(), &hcloud.Server{ID: s.only().ID}); err != nil {
			t.Fatal(err)
		}
		s.wire = s.world.wire()
		s.refused("being deleted", given{"instances": []string{here.text(t, "uri")}}, "INVALID_STATE: ", "is being deleted")
	})
}

// "for a shared volume on its network (INVALID_INPUT)"; "a shared volume attaches to
// any number of instances, each at most once".
func TestVolumeSharedAttachesToInstancesOfItsNetworkEachOnce(t *testing.T) {
	onShares(t, func(t *testing.T, s *spec, vpc string) {
		uris := make([]string, 3)
		for i, name := range []string{"web-0", "web-1", "web-2"} {
			uris[i] = s.make(instanceType, given{"name": name, "region": s.region, "network_id": vpc}).text(t, "uri")
		}
		off := s.make(instanceType, given{"name": "off", "region": s.region}).text(t, "uri")
		s.refused("off the network", s.share(vpc, given{"instances": []string{uris[0], off}}), "INVALID_INPUT: ", "is on the network")
		short := strings.Replace(s.poolURI, "/web?", "/web/instances/web-0?", 1)
		s.refused("twice", s.share(vpc, given{"instances": []string{uris[0], short}}), "INVALID_INPUT: ", "twice")
		made := s.make(volumeType, s.share(vpc, given{"instances": uris}))
		if got := strings.Count(made.value.String(), `"instance_id":tftypes.String<"inst_`); got != 3 {
			t.Errorf("%d attachments in %s", got, made.value)
		}
	})
}

// "The name is unique … among volumes that are not deleted (CONFLICT)": in a pool, and
// wherever the cloud wants it so. A name is free again once its volume is gone.
func TestVolumeNameIsUniqueAmongThoseThatAreThere(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		first := s.make(volumeType, nil)
		for what, more := range map[string]given{
			"the same pool":                {},
			"another pool of this account": {"pool": strings.Replace(s.poolURI, "/web?", "/db?", 1)},
		} {
			s.wire = s.world.wire()
			if made, problems := s.tried(more); !made.value.IsNull() || !strings.HasPrefix(problems, "CONFLICT: ") {
				t.Errorf("%s: %s, made %s", what, problems, made.value)
			}
		}
		before := s.one()
		s.gone(volumeType, first)
		s.make(volumeType, nil)
		if after := s.one(); after.id == before.id {
			t.Errorf("the volume is still %+v", after)
		}
	})
}

// "A tenant without room on diskGiB … is QUOTA_EXCEEDED", before any call that makes
// something; here the room is the pool's limits.disk_gib.
func TestVolumeWithoutRoomOnThePoolsDiskIsQuotaExceeded(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		limited := given{"pool": strings.Replace(s.poolURI, "?", "?pool.limits.disk_gib=25&", 1)}
		s.make(volumeType, limited)
		s.calledFor()
		more := maps.Clone(limited)
		maps.Copy(more, given{"name": "more", "size_gib": 16})
		if made, problems := s.tried(more); !made.value.IsNull() || !strings.HasPrefix(problems, "QUOTA_EXCEEDED: ") {
			t.Errorf("%s, made %s", problems, made.value)
		}
		if calls := s.calledFor(); len(calls) > 0 {
			t.Errorf("it took %v", calls)
		}
		more["size_gib"] = 15
		s.make(volumeType, more)
	})
}

// "A create the provider refused (an account volume limit, a name taken by a volume
// that is not this deployment's) is error …; deleting it makes no provider call": here
// nothing is recorded, and the next apply tries again.
func TestVolumeWhoseCreateWasRefusedIsNotRecordedAndTriedAgain(t *testing.T) {
	onBothClouds(t, 0, func(t *testing.T, s *spec) {
		s.broken(emulator.Rule{Method: "POST", Path: "/volumes", Kind: emulator.KindCapacity, Times: emulator.Forever})
		s.wire = s.world.wire()
		if made, problems := s.tried(nil); !made.value.IsNull() || !strings.HasPrefix(problems, "PROVIDER_ERROR: ") {
			t.Errorf("%s, recorded %s", problems, made.value)
		}
		if all := s.seen(); len(all) > 0 {
			t.Errorf("the cloud has %+v", all)
		}
		s.hetzner.ClearFaults()
		s.cloud.ClearFaults()
		s.make(volumeType, nil)
		s.one()
	})
}
