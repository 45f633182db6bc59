// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// importID is the id in the block that a CONFLICT prints.
var importID = regexp.MustCompile(`import \{\s+to\s+= \S+\.THIS\s+id\s+= "([^"]+)"`)

// heal is the one clean apply after what went wrong. Where conflicts are allowed, the
// blocks that they print are pasted, with the address that the CLI prints beside them:
// first for the machines, then for what needs them.
func (s *workspace) heal(t *testing.T, conflicts bool) {
	t.Helper()
	pasted := ""
	for range 4 {
		r := s.apply(t)
		if r.problem(0) == "" {
			return
		}
		var blocks strings.Builder
		for _, d := range r.diagnostics {
			id := importID.FindStringSubmatch(d.Detail)
			switch {
			case d.Severity != "error":
			case !conflicts || id == nil || d.Address == "" || !strings.HasPrefix(d.Summary, "CONFLICT: "):
				t.Fatalf("the clean apply: %s", r.problem(0))
			default:
				tally.imported.Add(1)
				fmt.Fprintf(&blocks, "import {\n  to = %s\n  id = %q\n}\n", d.Address, id[1])
			}
		}
		if blocks.Len() == 0 {
			t.Fatalf("the clean apply: %s", r.problem(0))
		}
		pasted += blocks.String()
		s.write(t, "import.tf", pasted)
	}
	t.Fatalf("what the conflicts printed doesn't lead to an end:\n%s", pasted)
}

// holds checks that the cloud has exactly the objects of the configuration, that the
// state has them with their ids, and that nothing is left to do.
func (s *workspace) holds(t *testing.T, machines int) {
	t.Helper()
	objects := s.Objects()
	inState, volumesInState := s.recorded(t)
	same(t, "machines", "web", machines, objects.Machines, inState)
	same(t, "volumes", "data", s.volumes, objects.Volumes, volumesInState)
	if len(objects.Snapshots) > 0 {
		t.Errorf("the cloud has snapshots: %+v", objects.Snapshots)
	}
	r := s.run(t, "plan", "-detailed-exitcode")
	if problem := r.problem(0); problem != "" {
		t.Errorf("a further plan: %s\n%s", problem, changes(r.text))
	} else if len(r.diagnostics) > 0 {
		t.Errorf("a further plan says\n%s", r.said())
	}
}

// changes are the lines of the output that tell what is planned.
func changes(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"type":"planned_change"`) || strings.Contains(line, `"type":"resource_drift"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// same compares what there should be with what the cloud and the state have.
func same(t *testing.T, what, prefix string, n int, objects []emulator.Object, records []record) {
	t.Helper()
	var want, inCloud, inState, claims []string
	ids := map[string]string{}
	for i := range n {
		want = append(want, fmt.Sprintf("%s-%d", prefix, i))
	}
	for _, o := range objects {
		inCloud = append(inCloud, o.Name)
		ids[o.Name] = o.ID
		if !o.Managed {
			t.Errorf("%s %s has no mark", what, o.Name)
		}
	}
	for _, r := range records {
		inState = append(inState, r.name)
		if r.id != ids[r.name] || r.id == "" || r.claim == "" || r.status != "" || slices.Contains(claims, r.claim) {
			t.Errorf("%s: the state has %+v, the cloud %q", what, r, ids[r.name])
		}
		claims = append(claims, r.claim)
	}
	for where, names := range map[string][]string{"cloud": inCloud, "state": inState} {
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		if !slices.Equal(names, want) {
			t.Errorf("%s in the %s: %v, want %v", what, where, names, want)
		}
	}
}

// nothingLeft checks that the cloud is as it was in the beginning.
func (s *workspace) nothingLeft(t *testing.T) {
	t.Helper()
	if o := s.Objects(); len(o.Machines)+len(o.Volumes)+len(o.Snapshots) > 0 {
		t.Errorf("after the destroy the cloud has %+v", o)
	}
	if extra := s.extra(); len(extra) > 0 {
		t.Errorf("after the destroy the cloud has %v", extra)
	}
	if machines, volumes := s.recorded(t); len(machines)+len(volumes) > 0 {
		t.Errorf("after the destroy the state has %v %v", machines, volumes)
	}
}

// destroys destroys all and checks that nothing is left.
func (s *workspace) destroys(t *testing.T) {
	t.Helper()
	if problem := s.destroy(t).problem(0); problem != "" {
		t.Errorf("the destroy: %s", problem)
	}
	s.nothingLeft(t)
}
