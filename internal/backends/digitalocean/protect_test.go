// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

func TestProtectionIsATag(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} })
	protect := func(on bool) backends.Machine {
		t.Helper()
		for range 2 { // again is fine
			if err := c.Protect(t.Context(), m, on); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.GetMachine(t.Context(), m.ID)
		if err != nil || got.Protected != on || got.Marks != m.Marks || !maps.Equal(got.Labels, map[string]string{"role": "web"}) {
			t.Fatalf("protection %v: %+v, %v", on, got, err)
		}
		return got
	}
	protected := protect(true)
	cloud.ClearCalls()
	for what, err := range map[string]error{
		"deletion":           c.DeleteMachine(t.Context(), protected),
		"selective deletion": c.DeleteMachineWith(t.Context(), protected, []backends.Volume{{ID: "x"}}),
	} {
		if e := wantError(t, err); e.Code != backends.InvalidState || e.Reason != backends.ReasonProtected {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := cloud.Calls(); len(got) != 0 {
		t.Errorf("calls %v", got)
	}
	// Whoever writes marks, by whatever they saw, doesn't lift it.
	unseen := m
	unseen.Marks.Claim = "another"
	marks := m.Marks
	marks.Claim, marks.Complete = "n3w", true
	for _, was := range []backends.Machine{m, unseen, protected} {
		if _, err := c.MarkMachine(t.Context(), was, marks); err != nil {
			t.Fatal(err)
		}
		if got := cloud.Droplets()[0].Tags; !slices.Contains(got, "better-compute:protected") || !slices.Contains(got, "better-compute:claim:n3w") {
			t.Errorf("tags %v", got)
		}
	}
	m.Marks = marks
	if err := c.DeleteMachine(t.Context(), protect(false)); err != nil {
		t.Fatal(err)
	}
	if err := c.Tidy(t.Context(), marks); err != nil {
		t.Fatal(err)
	}
	if tags := cloud.Tags(); len(tags) == 0 || slices.Contains(tags, "better-compute:claim:n3w") {
		t.Errorf("left: %v", tags)
	}
	if got := cloud.Droplets(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// Tags come back in the spelling that they were first written in.
func TestProtectionInAnySpelling(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	send(t, cloud, "POST", "/v2/tags", map[string]string{"name": strings.ToUpper(DefaultTagPrefix + ":" + tagProtected)})
	m := made(t, c)
	if err := c.Protect(t.Context(), m, true); err != nil {
		t.Fatal(err)
	}
	if got, err := c.GetMachine(t.Context(), m.ID); err != nil || !got.Protected || len(got.Labels) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
