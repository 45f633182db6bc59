// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// victim is who dies, and how.
type victim struct {
	name string
	kill func(*process) error
	// gently tells that the victim is asked: it ends in good order.
	gently bool
}

var victims = []victim{
	{"provider", (*process).killProvider, false},
	{"cli", (*process).killCLI, false},
	{"both", (*process).killAll, false},
	{"interrupt", (*process).interrupt, true},
}

// death is a point in a command, and who dies there.
type death struct {
	victim
	at int
	// after tells that the call at the point has its effect, and only its answer is
	// lost; else it has none.
	after bool
}

// String is a part of a test's name.
func (d death) String() string {
	when := "before"
	if d.after {
		when = "after"
	}
	return fmt.Sprintf("%03d-%s-%s", d.at, when, d.name)
}

// deaths are those of a command that makes these calls. Those that differ from another
// in no way that a cloud or a state could tell are only there where all are wanted: a
// read has no effect to be after, and a poll is like the one before it.
func deaths(calls []emulator.Call) []death {
	var out []death
	for i, call := range calls {
		read := call.Method == http.MethodGet
		again := read && i > 0 && calls[i-1].Method == call.Method && calls[i-1].Path == call.Path
		for _, after := range []bool{false, true} {
			if amount() != "all" && (again || read && after) {
				continue
			}
			for _, v := range victims {
				out = append(out, death{v, i + 1, after})
			}
		}
	}
	return out
}

// strike runs a command until a death's point, lets the victim die, and waits for the
// command's end. A command that doesn't come to the point ends by itself.
func (d death) strike(t *testing.T, s *workspace, command string, arguments ...string) result {
	t.Helper()
	tally.points.Add(1)
	stop := s.set(d.at, d.after)
	p := s.start(t, command, arguments...)
	select {
	case <-stop.reached:
		tally.reached.Add(1)
		if err := d.kill(p); err != nil {
			t.Fatal("the kill: ", err)
		}
		if d.gently {
			select {
			case <-p.interrupted:
			case <-p.ended:
			}
			stop.release()
		}
	case <-p.ended:
	}
	r := p.wait(t)
	stop.release()
	if r.err != nil {
		t.Fatalf("%s: %s", command, r.problem(0))
	}
	s.set(0, false)
	return r
}
