// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

// resizable is a site with a server of cx23 (40 GB), and its wish of another offer.
func resizable(t *testing.T, options emulated.Options, offer string) (*site, backends.MachineSpec) {
	t.Helper()
	s := newSite(t, options, func(*site) backends.MachineSpec { return testSpec() })
	to := testSpec()
	to.Offer = offer
	s.cloud.ClearCalls()
	return s, to
}

func (s *site) resize(to backends.MachineSpec, growDisk bool) error {
	m, err := s.client.Resize(s.Context(), s.machine, to, growDisk, s.off)
	if err == nil {
		s.machine = m
	}
	return err
}

// TestResize goes up and, since the disk was kept, down again; then up for good.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to := resizable(t, emulated.Options{Boot: 8 * time.Second}, "cx33")
		if os.Getenv(openapitest.Variable) != "" {
			described := openapitest.Wrap(t, openapitest.Load(t, "hetzner.json"), s.cloud)
			s.client = clientOf(t, emulator.Transport(described), &fixedSecrets{token: testToken})
		}
		for i, step := range []struct {
			offer string
			grow  bool
			disk  int
		}{{"cx33", false, 40}, {"cx23", false, 40}, {"cx33", true, 80}, {"cx43", true, 160}} {
			to.Offer = step.offer
			s.cloud.ClearCalls()
			if err := s.resize(to, step.grow); err != nil {
				t.Fatal(err)
			}
			v := s.server()
			if s.machine.Offer != step.offer || v.ServerType != step.offer || v.Disk != step.disk || s.offs != i+1 || s.written() != "change_type" {
				t.Errorf("step %d: %s, %+v, off %d times, %s", i, s.machine.Offer, v, s.offs, s.written())
			}
			s.cloud.ClearCalls()
			if err := s.resize(to, step.grow); err != nil || len(s.cloud.Calls()) != 1 || s.offs != i+1 {
				t.Errorf("step %d again: %v, %v", i, err, s.cloud.Calls())
			}
		}
	})
}

func TestCheckResize(t *testing.T) {
	s, to := resizable(t, emulated.Options{}, "")
	grown := made(t, s.client, func(spec *backends.MachineSpec) { spec.Name, spec.Offer = "big", "cx33" })
	s.cloud.SetStock("cx43", "fsn1", false)
	s.client = clientOf(t, emulator.Transport(s.cloud), &fixedSecrets{token: testToken}) // which hasn't read the catalog
	s.cloud.ClearCalls()
	for name, tt := range map[string]struct {
		m              backends.Machine
		offer          string
		grow           bool
		issue, warning string
		remedy         string
	}{
		"not known yet":        {m: s.machine},
		"the same":             {m: s.machine, offer: "cx23"},
		"larger":               {m: s.machine, offer: "cx33", warning: "keeps its 40 GB, although cx33 has 80 GB"},
		"larger, disk too":     {m: s.machine, offer: "cx33", grow: true, warning: "grows from 40 to 80 GB, and can't shrink again"},
		"no larger a disk":     {m: s.machine, offer: "cpx12"},
		"another architecture": {m: s.machine, offer: "cax11", issue: "web-0 is of the architecture x86, cax11 is of arm", remedy: "cpx22"},
		"a smaller disk":       {m: grown, offer: "cx23", issue: "has 80 GB, that of cx23 only 40 GB", remedy: "cpx22"},
		"not in the region":    {m: s.machine, offer: "cpx31", issue: "cpx31 is not offered in fsn1", remedy: "cpx32"},
		"withdrawn there":      {m: s.machine, offer: "cpx11", issue: "cpx11 was withdrawn from fsn1"},
		"being withdrawn":      {m: s.machine, offer: "cx22", issue: "cx22 is being withdrawn from fsn1"},
		"out of stock":         {m: s.machine, offer: "cx43", issue: "cx43 is out of stock in fsn1 now", remedy: "cpx42"},
		"no such type":         {m: s.machine, offer: "cx32", issue: `no server type "cx32"`, remedy: "cx33"},
	} {
		to.Offer = tt.offer
		warnings, issues, err := s.client.CheckResize(t.Context(), tt.m, to, tt.grow)
		if err != nil {
			t.Fatal(err)
		}
		if (tt.warning != "") != (len(warnings) == 1) || !strings.Contains(strings.Join(warnings, ""), tt.warning) {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		if tt.issue == "" {
			if len(issues) > 0 {
				t.Errorf("%s: %v", name, issues)
			}
			continue
		}
		if len(issues) != 1 || issues[0].Path.String() != "offer" || !strings.Contains(issues[0].Message, tt.issue) || !strings.Contains(issues[0].Remedy, tt.remedy) {
			t.Fatalf("%s: %v", name, issues)
		}
		for _, never := range []string{"cax", "cx43", "cx23,", "cx22"} {
			if strings.Contains(issues[0].Remedy, never) && name != "no such type" {
				t.Errorf("%s: the remedy names what doesn't fit: %s", name, issues[0].Remedy)
			}
		}
		wantCode := backends.InvalidInput
		if name == "out of stock" {
			wantCode = backends.CapacityUnavailable
		}
		if issues[0].Code != wantCode {
			t.Errorf("%s: %s", name, issues[0].Code)
		}
	}
	if s.written() != "" {
		t.Errorf("a check has written: %s", s.written())
	}
}

// TestFailedResize: the server keeps its type, and the error says what else there is.
func TestFailedResize(t *testing.T) {
	s, to := resizable(t, emulated.Options{}, "cx33")
	s.cloud.SetStock("cx33", "fsn1", false)
	e := wantError(t, s.resize(to, false))
	if e.Reason != backends.ReasonCapacity || e.Details["status"] != 412 || !strings.Contains(e.Remedy, "cpx32") || !strings.Contains(e.Message, "keeps its type") {
		t.Errorf("no room: %v (%s)", e, e.Remedy)
	}
	s.cloud.SetStock("cx33", "fsn1", true)
	if err := s.cloud.AddFault(emulator.Rule{Service: "hetzner", Path: "*/change_type", Kind: emulator.KindFailAction}); err != nil {
		t.Fatal(err)
	}
	if e := wantError(t, s.resize(to, false)); e.Reason != backends.ReasonAction {
		t.Errorf("a failed action: %v", e)
	}
	refused := errors.New("the guest won't")
	s.cloud.ClearCalls()
	m, err := s.client.Resize(t.Context(), s.machine, to, false, func(context.Context) error { return refused })
	if !errors.Is(err, refused) || m.Offer != "cx23" || s.written() != "" {
		t.Errorf("without power down: %v, %s, %s", err, m.Offer, s.written())
	}
	if s.server().ServerType != "cx23" {
		t.Errorf("is %+v", s.server())
	}
	s.cloud.Delete(mustNumber(s.machine.ID))
	if e := wantError(t, s.resize(to, false)); e.Code != backends.NotFound {
		t.Errorf("gone: %v", e)
	}
}

// TestInterruptedResize lets each call go wrong. The next run ends it, and switches the
// server off for it only if there is anything left to do.
func TestInterruptedResize(t *testing.T) {
	for nth, more := 1, true; more && !t.Failed(); nth++ {
		for how, rules := range interruptions(nth) {
			synctest.Test(t, func(t *testing.T) {
				s, to := resizable(t, emulated.Options{Boot: 4 * time.Second}, "cx33")
				for _, rule := range rules {
					if err := s.cloud.AddFault(rule); err != nil {
						t.Fatal(err)
					}
				}
				first := s.resize(to, false)
				calls := s.cloud.Calls()
				s.cloud.ClearFaults()
				if backends.HasCode(first, backends.NotFound) {
					t.Errorf("%v, of a server that is there", first)
				}
				if how == lostAnswer && first != nil {
					t.Errorf("the first run: %v", first)
				}
				offs := s.offs
				done := s.server().ServerType == "cx33" || s.server().Locked
				if err := s.resize(to, false); err != nil {
					t.Errorf("the second run: %v", err)
				}
				if v := s.server(); v.ServerType != "cx33" || v.Disk != 40 || done && s.offs != offs {
					t.Errorf("is %+v; it was done: %v, and was switched off %d times more", v, done, s.offs-offs)
				}
				if t.Failed() {
					t.Logf("%s, call %d of %v; the first run: %v", how, nth, calls, first)
				}
				more = nth <= len(calls)
			})
		}
	}
}
