// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// droplet is the options of an instance at DigitalOcean.
func (s *spec) droplet(options given) tftypes.Value {
	s.t.Helper()
	typ, ok := s.wire.types[instanceType].AttributeTypes["digitalocean"].(tftypes.Object)
	if !ok {
		s.t.Fatal("no options of DigitalOcean")
	}
	values := nulls(typ)
	for name, v := range options {
		switch v := v.(type) {
		case bool:
			values[name] = tftypes.NewValue(tftypes.Bool, v)
		case []string:
			var elements []tftypes.Value
			for _, e := range v {
				elements = append(elements, tftypes.NewValue(tftypes.String, e))
			}
			values[name] = tftypes.NewValue(typ.AttributeTypes[name], elements)
		case given:
			inner, _ := typ.AttributeTypes[name].(tftypes.Object)
			fields := nulls(inner)
			for field, x := range v {
				fields[field] = tftypes.NewValue(inner.AttributeTypes[field], x)
			}
			values[name] = tftypes.NewValue(inner, fields)
		default:
			s.t.Fatalf("%s: a value of the type %T", name, v)
		}
	}
	return tftypes.NewValue(typ, values)
}

// shown is the only Droplet in one line: all that edits change.
func (s *spec) shown() string {
	s.t.Helper()
	all := s.cloud.Droplets()
	if len(all) != 1 {
		s.t.Fatalf("%d Droplets: %+v", len(all), all)
	}
	d := all[0]
	tags := slices.DeleteFunc(slices.Sorted(slices.Values(d.Tags)), func(tag string) bool { return strings.HasPrefix(tag, "better-compute") })
	return fmt.Sprintf("%d %s %s %d %s %v %q ipv6 %v", d.ID, d.Name, d.Size, d.Disk, d.Status, tags, d.Policy, d.IPv6)
}

// planned is what a plan of an instance replaces and warns of, and whether it makes any change.
func (s *spec) planned(prior object, more given) (replaces []string, warnings string, changes bool) {
	s.t.Helper()
	typ, config := s.wire.types[instanceType], s.config(instanceType, more)
	resp, err := s.wire.server.PlanResourceChange(s.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: instanceType, PriorState: s.wire.dynamic(typ, prior.value), PriorPrivate: prior.private,
		ProposedNewState: s.wire.dynamic(typ, s.wire.proposed(instanceType, prior.value, config)), Config: s.wire.dynamic(typ, config),
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if problems := errorsOf(resp.Diagnostics); problems != "" {
		s.t.Fatal(problems)
	}
	for _, path := range resp.RequiresReplace {
		replaces = append(replaces, path.String())
	}
	return replaces, warningsOf(resp.Diagnostics), !s.wire.value(instanceType, resp.PlannedState).Equal(prior.value)
}

// A Droplet's life on day two: each edit is made on the same Droplet, restarts it only
// where its plan has said so, and leaves nothing to do.
func TestOceanEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 16*time.Second)
		vpc := s.cloud.AddVPC("main", "fra1")
		web := given{"labels": map[string]string{"role": "web"}, "network_id": vpc}
		state := s.make(instanceType, web)
		id := state.text(t, "machine_id")
		s.cloud.SetTags(s.cloud.Droplets()[0].ID, append(s.cloud.Droplets()[0].Tags, "theirs"))
		more := maps.Clone(web)
		for _, step := range []struct {
			more    given
			want    string
			warning string // part of the plan's warnings; "": there are none
			restart bool
		}{
			{given{"labels": map[string]string{"role": "api", "tier": ""}}, `web-0 s-1vcpu-1gb 25 active [role:api theirs tier] "" ipv6 false`, "", false},
			{given{"name": "api-0"}, `api-0 s-1vcpu-1gb 25 active [role:api theirs tier] "" ipv6 false`, "", false},
			{given{"offer": "s-2vcpu-4gb"}, `api-0 s-2vcpu-4gb 25 active [role:api theirs tier] "" ipv6 false`, "restarted", true},
			{given{"offer": "s-1vcpu-1gb"}, `api-0 s-1vcpu-1gb 25 active [role:api theirs tier] "" ipv6 false`, "restarted", true},
			{given{"offer": "s-2vcpu-4gb", "resize_disk": true}, `api-0 s-2vcpu-4gb 80 active [role:api theirs tier] "" ipv6 false`, "Worth a look", true},
			{given{"digitalocean": s.droplet(given{"backups": true, "tags": []string{"lb"}})}, `api-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "daily 0" ipv6 false`, "", false},
			{
				given{"digitalocean": s.droplet(given{"backups": true, "backup_policy": given{"plan": "weekly", "weekday": "SAT", "hour": 4}, "ipv6": true})},
				`api-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "weekly SAT 4" ipv6 true`, "digitalocean.ipv6", false,
			},
			{given{"digitalocean": s.droplet(given{"monitoring": true, "backups": false})}, `api-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "" ipv6 true`, "Recorded only: digitalocean.monitoring", false},
			{given{"digitalocean": nil}, `api-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "" ipv6 true`, "Left as it is", false},
			{given{"labels": nil}, `api-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "" ipv6 true`, "Left as it is: labels", false},
			{given{"labels": map[string]string{}, "name": "web-0"}, `web-0 s-2vcpu-4gb 80 active [lb role:api theirs tier] "" ipv6 true`, "", false},
		} {
			maps.Copy(more, step.more)
			replaces, warnings, _ := s.planned(state, more)
			if len(replaces) > 0 || (warnings != "") != (step.warning != "") || !strings.Contains(warnings, step.warning) {
				t.Errorf("%v: replaces %v, warns %q", step.more, replaces, warnings)
			}
			s.cloud.ClearCalls()
			state = s.change(instanceType, state, more)
			if got := s.shown(); got != id+" "+step.want {
				t.Errorf("%v: %s", step.more, got)
			}
			if state.text(t, "machine_id") != id || state.text(t, "state") != "running" || state.text(t, "name") != s.cloud.Droplets()[0].Name {
				t.Errorf("%v: %v", step.more, state.value)
			}
			s.wire = s.world.wire()
			read, diags := s.wire.read(instanceType, state)
			state = done(t, read, diags)
			if replaces, warnings, changes := s.planned(state, more); len(replaces) > 0 || changes || warnings != "" {
				t.Errorf("%v: a further plan replaces %v, warns %q, changes: %v", step.more, replaces, warnings, changes)
			}
		}
		if replaces, _, _ := s.planned(state, with(more, given{"network_id": s.cloud.AddVPC("other", "fra1")})); len(replaces) != 1 {
			t.Errorf("another VPC replaces %v", replaces)
		}
	})
}

// What can't be is refused at plan time, and nothing is called that changes anything.
func TestOceanResizesThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 0)
		state := s.make(instanceType, given{"offer": "s-2vcpu-4gb"})
		s.calledFor()
		for offer, want := range map[string]string{
			"s-1vcpu-1gb":     "a disk can't be made smaller",
			"gpu-h100x1-80gb": "not offered in fra1",
			"s-9vcpu-1gb":     "no size",
		} {
			if got := s.problems(instanceType, state, given{"offer": offer}); !strings.Contains(got, "INVALID_INPUT") || !strings.Contains(got, want) || !strings.Contains(got, "s-") {
				t.Errorf("%s: %q", offer, got)
			}
		}
		if calls := s.calledFor(); len(calls) > 0 {
			t.Errorf("calls %v", calls)
		}
	})
}

// Deletion protection is a tag at DigitalOcean, which holds for any state that knows
// the Droplet.
func TestOceanProtection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpec(t, specClouds()[1], 0)
		state := s.make(instanceType, given{"deletion_protection": true})
		unaware := s.make(instanceType, given{"name": "web-1"})
		if tags := s.cloud.Droplets()[0].Tags; !slices.Contains(tags, "better-compute:protected") {
			t.Fatalf("tags %v", tags)
		}
		s.cloud.SetTags(s.cloud.Droplets()[1].ID, append(s.cloud.Droplets()[1].Tags, "better-compute:protected"))
		s.calledFor()
		s.wire = s.world.wire() // another run
		for what, prior := range map[string]object{"the one that says so": state, "one that says nothing": unaware} {
			if _, diags := s.wire.destroy(instanceType, prior); !strings.Contains(errorsOf(diags), "INVALID_STATE") || !strings.Contains(errorsOf(diags), "deletion protection") {
				t.Errorf("%s: %q", what, errorsOf(diags))
			}
		}
		if calls := s.calledFor(); len(calls) > 0 || len(s.cloud.Droplets()) != 2 {
			t.Errorf("calls %v", calls)
		}
		state = s.change(instanceType, state, given{"deletion_protection": false})
		s.gone(instanceType, state)
	})
}
