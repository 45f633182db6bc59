// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// template is a cloud with all that the configuration asks for, to be copied.
type template struct {
	applyCalls, destroyCalls []emulator.Call
	cloud                    json.RawMessage
	state, address           string
}

var templates sync.Map // by the cloud's name

// template applies and destroys once, without a death.
func (c cloud) template(t *testing.T) template {
	t.Helper()
	if made, ok := templates.Load(c.Name); ok {
		return made.(template)
	}
	s := c.serve(t).workspace(t, c.machines, false)
	out := template{address: s.address}
	if problem := s.apply(t).problem(0); problem != "" {
		t.Fatalf("%s: the apply: %s", c.Title, problem)
	}
	out.applyCalls = s.Gate().Calls()
	s.holds(t, c.machines)
	state, err := os.ReadFile(filepath.Join(s.folder, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	out.state = string(state)
	if out.cloud, err = s.service.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.Gate().ClearCalls()
	s.destroys(t)
	out.destroyCalls = s.Gate().Calls()
	templates.Store(c.Name, out)
	return out
}

// copy is a workspace in which all is applied.
func (m template) copy(t *testing.T, c cloud) *workspace {
	t.Helper()
	s := c.serve(t).workspace(t, c.machines, false)
	if err := s.service.Restore(m.cloud); err != nil {
		t.Fatal(err)
	}
	// The account leads to where the cloud is now.
	s.write(t, stateFile, strings.ReplaceAll(m.state, m.address, s.address))
	return s
}

// killedDestroy is a schedule of [TestKilledDestroy].
type killedDestroy struct {
	cloud
	death
	template
}

// TestKilledDestroy: a destroy dies at each of its calls; the next one ends it.
func TestKilledDestroy(t *testing.T) {
	needsCLI(t)
	var schedules []killedDestroy
	for _, c := range clouds() {
		m := c.template(t)
		t.Logf("%s: a destroy makes %d calls", c.Title, len(m.destroyCalls))
		for i, d := range deaths(m.destroyCalls) {
			// The victims in turn.
			if amount() != "points" || i%len(victims) == i/len(victims)%len(victims) {
				schedules = append(schedules, killedDestroy{c, d, m})
			}
		}
	}
	for _, k := range sample(t, schedules, 3, func(k killedDestroy) string { return k.Name }) {
		t.Run(k.Name+"/"+k.death.String(), func(t *testing.T) {
			t.Parallel()
			schedule(t)
			s := k.template.copy(t, k.cloud)
			k.strike(t, s, "destroy", "-auto-approve")
			s.destroys(t)
		})
	}
}
