// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// TestFaultMatrix puts every fault into every call of every operation on every cloud.
// The calls are those of the operation's run without a fault. After the faulty run, one
// more apply in a new process must do:
//
//	the cloud holds what it holds after a run without a fault, and nothing else;
//	each object is recorded, with its id and claim; a plan is empty, without a warning;
//	destroying everything leaves nothing.
//
// That apply starts from what the faulty run would have left in the state (kept); from
// the state before it, with adopt = true on the pool (lost); and from that without
// adopt, where a CONFLICT must print import blocks that work (import).
//
// Which schedules are played doesn't change from run to run: without more one of [sampleOf];
// with TORTURE=20 in the environment one of 20, and with TORTURE=1 all. Faults that end
// alike, cloud and state, share what follows. One schedule alone:
//
//	TORTURE=1 go test ./internal/provider -run 'TestFaultMatrix/hetzner/create-instance/03-lose-answer$'
func TestFaultMatrix(t *testing.T) {
	t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
	// Most of the time goes into short-lived values.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var schedules, endings atomic.Int64
	for _, m := range matrixClouds(t) {
		t.Run(m.name, func(t *testing.T) {
			for _, op := range m.all(t) {
				t.Run(op.name, func(t *testing.T) {
					p := m.rehearse(t, op)
					if p == nil {
						return
					}
					for _, s := range p.schedules() {
						t.Run(s.name(), func(t *testing.T) {
							schedules.Add(1)
							endings.Add(int64(p.play(t, s)))
						})
					}
				})
			}
		})
	}
	t.Logf("%d schedules, %d endings", schedules.Load(), endings.Load())
}

// tortureVariable says of how many schedules one is played, instead of [sampleOf].
const tortureVariable = "TORTURE"

// piece is an operation that was played without a fault.
type piece struct {
	*matrixCloud
	operation
	pools [2]string // without adopt, and with it
	begin moment    // before the operation
	calls []emulator.Call
	seen  string // what the cloud holds after it
	empty string // and before anything was made
	// parents are the account and the pool, which are destroyed last.
	parents []recorded
	known   []emulator.Kind // faults of the cloud
	// outcomes are those of faulty runs from which it was gone on.
	outcomes map[string]bool
}

// scheduled is a fault at a call, counted from 1.
type scheduled struct {
	call  int
	fault fault
	what  emulator.Call
}

// schedule is what goes wrong in one run.
type schedule []scheduled

func (s schedule) name() string {
	parts := make([]string, len(s))
	for i, f := range s {
		parts[i] = fmt.Sprintf("%02d-%s", f.call, f.fault.name)
	}
	return strings.Join(parts, "+")
}

func (s schedule) String() string {
	parts := make([]string, len(s))
	for i, f := range s {
		parts[i] = fmt.Sprintf("call %d (%s %s): %s", f.call, f.what.Method, f.what.Path, f.fault.name)
	}
	return strings.Join(parts, ", ")
}

// all are a cloud's operations; what they name is made again, alike, for each.
func (m *matrixCloud) all(t *testing.T) (out []operation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := ""
		if m.prepare != nil {
			network = m.prepare(m.newStage(t).service)
		}
		out = m.operations(network)
	})
	return out
}

// rehearse plays an operation without a fault.
func (m *matrixCloud) rehearse(t *testing.T, op operation) *piece {
	t.Helper()
	p := &piece{matrixCloud: m, operation: op, outcomes: map[string]bool{}}
	synctest.Test(t, func(t *testing.T) { p.prepare(t) })
	if t.Failed() {
		return nil
	}
	synctest.Test(t, func(t *testing.T) {
		s := m.at(t, p.begin)
		c := p.core(s, p.begin.state, op.adopts)
		c.run(t.Context())
		p.calls = s.service.Gate().Calls()
		p.known, p.seen = s.service.Gate().Kinds(), s.seen(c.state)
		if problems := c.problems(); problems != "" {
			t.Errorf("without a fault: %s", problems)
		}
		if problems := p.settled(t, s, c.state, op.adopts); problems != "" {
			t.Errorf("without a fault: %s", problems)
		}
	})
	if t.Failed() {
		return nil
	}
	return p
}

func (p *piece) prepare(t *testing.T) {
	s := p.newStage(t)
	network := ""
	if p.matrixCloud.prepare != nil {
		network = p.matrixCloud.prepare(s.service)
	}
	// Ids of networks are random, so the operation is that of this very cloud.
	for _, op := range p.operations(network) {
		if op.name == p.name() {
			p.operation = op
		}
	}
	w := s.process()
	p.types = w.types
	p.makeParents(t, w)
	p.empty = strings.Join(s.leftovers(), "\n")
	c := newCore(w, state{}, p.pools[0], p.from)
	c.run(t.Context())
	if problems := c.problems(); problems != "" {
		t.Fatalf("preparing: %s", problems)
	}
	if p.disturb != nil {
		p.disturb(s.service, c.state)
	}
	if p.imports {
		first := p.from[0]
		uri := c.state[first.address].attribute("uri")
		c = newCore(s.process(), c.state, p.pools[0], p.from)
		delete(c.state, first.address)
		c.importObject(t.Context(), first, 0, uri)
		if problems := c.problems(); problems != "" {
			t.Fatalf("preparing: %s", problems)
		}
	}
	p.begin = s.moment(c.state)
}

func (p *piece) name() string { return p.operation.name }

// makeParents makes an account and a pool; the pool has two uris.
func (p *piece) makeParents(t *testing.T, w *wire) {
	t.Helper()
	c := newCore(w, state{}, "", nil)
	parent := func(b block) object {
		made, diags := w.apply(t.Context(), b.typ, w.none(b.typ), c.evaluate(b))
		made = done(t, made, diags)
		p.parents = append([]recorded{{object: made, block: b}}, p.parents...)
		return made
	}
	account := parent(block{"account", accountType, with(p.account, given{"name": "main"})})
	for i, adopt := range []bool{false, true} {
		pool := parent(block{"pool", poolType, given{"name": "web", "provider_account": account.text(t, "uri"), "adopt": adopt}})
		p.pools[i] = pool.text(t, "uri")
	}
}

func (p *piece) core(s *stage, state state, adopts bool) *core {
	pool := p.pools[0]
	if adopts {
		pool = p.pools[1]
	}
	return newCore(s.process(), state, pool, p.to)
}

// schedules are those to play.
func (p *piece) schedules() (out []schedule) {
	known, of := p.known, sampleOf
	if n, err := strconv.Atoi(os.Getenv(tortureVariable)); err == nil && n > 0 {
		of = n
	}
	for i, call := range p.calls {
		for _, f := range matrixFaults() {
			s := schedule{{i + 1, f, call}}
			if f.applies(known, call) && p.number(s)%of == 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

// number is any number that is always the same for a schedule.
func (p *piece) number(s schedule) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.matrixCloud.name + p.name() + s.name())) // never fails
	return int(h.Sum32())
}

// play plays a schedule, and each ending of an outcome that wasn't there before; it
// returns how many endings it played.
func (p *piece) play(t *testing.T, s schedule) int {
	n, problems := p.problems(t, s)
	if problems != "" {
		t.Error(problems)
	}
	return n
}

// problems are what is wrong after a schedule; n is how many endings were played.
func (p *piece) problems(t *testing.T, s schedule) (n int, all string) {
	var after moment
	var trace, outcome string
	synctest.Test(t, func(t *testing.T) { after, trace, outcome = p.faulty(t, s) })
	// Many faults end alike: from each outcome it is gone on once.
	if p.outcomes[outcome] {
		return 0, ""
	}
	p.outcomes[outcome] = true
	endings := map[string]func(*testing.T, moment) string{"kept": p.kept, "lost": p.lost, "import": p.imported}
	for _, name := range []string{"kept", "lost", "import"} {
		var problems string
		synctest.Test(t, func(t *testing.T) { problems = endings[name](t, after) })
		if problems != "" {
			all += fmt.Sprintf("%s %s: %s, state %s\n  the faulty run: %s\n  %s\n", p.matrixCloud.name, p.name(), s, name,
				strings.ReplaceAll(trace, "\n", "\n    "), strings.ReplaceAll(problems, "\n", "\n  "))
		}
	}
	return len(endings), all
}

// faulty is the run with faults. The trace says how it ended, and two runs with the
// same outcome left the same cloud and state, but for ids.
func (p *piece) faulty(t *testing.T, s schedule) (after moment, trace, outcome string) {
	stage := p.at(t, p.begin)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, f := range s {
		if f.fault.interrupt {
			stage.onCall = func(n int64) {
				if n == int64(f.call) {
					cancel()
				}
			}
		}
		for _, rule := range f.fault.rules(f.call, p.lag) {
			if err := stage.service.Gate().AddFault(rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := p.core(stage, p.begin.state, p.adopts)
	c.run(ctx)
	stage.service.Gate().ClearFaults()
	if len(c.broken) > 0 {
		t.Errorf("%s: %s", s, strings.Join(c.broken, "\n"))
	}
	trace = "no error"
	if len(c.errors) > 0 {
		trace = errorsOf(c.errors)
	}
	for address, r := range c.state {
		trace += fmt.Sprintf("\n%s recorded, tainted %v, state %q", address, r.tainted, r.attribute("state"))
	}
	outcome = stage.outcome(c.state)
	for _, f := range s {
		if f.fault.lags {
			outcome += s.name() // what is hidden isn't seen
		}
	}
	return stage.moment(c.state), trace, outcome
}

// kept goes on from what the faulty run recorded. Of a share that doesn't need to be
// finished nothing in the cloud tells whose it is, so where its making wasn't seen it
// has to be imported (DESIGN.md §6).
func (p *piece) kept(t *testing.T, after moment) string {
	if slices.ContainsFunc(p.to, func(b block) bool { return b.given["kind"] == "shared" }) {
		return p.importing(t, after, after.state)
	}
	s := p.at(t, after)
	c := p.core(s, after.state, p.adopts)
	c.run(t.Context())
	return p.ended(t, s, c, p.adopts)
}

// lost goes on from the state before, and adopts.
func (p *piece) lost(t *testing.T, after moment) string {
	s := p.at(t, after)
	c := p.core(s, p.begin.state, true)
	c.replaceLost = true
	c.run(t.Context())
	return p.ended(t, s, c, true)
}

// importBlock is an import block that a CONFLICT prints.
var importBlock = regexp.MustCompile(`import \{\s*to = (\w+)\.THIS\s*id = "([^"]+)"`)

// imported goes on from the state before, and imports what a CONFLICT names.
func (p *piece) imported(t *testing.T, after moment) string {
	return p.importing(t, after, p.begin.state)
}

func (p *piece) importing(t *testing.T, after moment, now state) string {
	s := p.at(t, after)
	for range len(p.to) + 1 {
		c := p.core(s, now, p.adopts)
		c.replaceLost = true
		c.run(t.Context())
		found := importBlock.FindAllStringSubmatch(errorsOf(c.errors), -1)
		if len(found) == 0 {
			return p.ended(t, s, c, p.adopts)
		}
		now = c.state
		for _, f := range found {
			i := slices.IndexFunc(p.to, func(b block) bool {
				return b.typ == f[1] && now[b.address].value.IsNull() && named(f[2], b)
			})
			if i < 0 {
				return "an import block names no block that lacks an object: " + f[0]
			}
			importing := p.core(s, now, p.adopts)
			importing.importObject(t.Context(), p.to[i], i, f[2])
			if problems := importing.problems(); problems != "" {
				return "importing: " + problems
			}
			now = importing.state
		}
	}
	return "CONFLICT again after importing what it named"
}

// named tells whether a uri is that of a block.
func named(uri string, b block) bool {
	name, _ := b.given["name"].(string)
	path, _, _ := strings.Cut(uri, "?")
	return slices.Contains(strings.Split(path, "/"), name)
}

// ended says what isn't as it must be after the apply that follows a faulty run.
func (p *piece) ended(t *testing.T, s *stage, c *core, adopts bool) string {
	if problems := c.problems(); problems != "" {
		return "the next apply: " + problems
	}
	if seen := s.seen(c.state); seen != p.seen {
		return "the cloud holds\n" + seen + "\nand should hold\n" + p.seen
	}
	return p.settled(t, s, c.state, adopts)
}

// unprotected is the configuration without what keeps it from being destroyed; nil
// where there is nothing.
func (p *piece) unprotected() (out blocks) {
	for _, b := range p.to {
		if b.given["deletion_protection"] == true {
			b.given = with(b.given, given{"deletion_protection": false})
			out = append(out, b)
		}
	}
	return out
}

// settled plans once more, and destroys.
func (p *piece) settled(t *testing.T, s *stage, now state, adopts bool) string {
	c := p.core(s, now, adopts)
	c.plan(t.Context())
	if problems := c.problems(); problems != "" {
		return "a plan: " + problems
	}
	for _, b := range p.to {
		if c.actions[b.address] != actNone {
			return fmt.Sprintf("a plan isn't empty: %s %s, from\n%s\nto\n%s", c.actions[b.address], b.address,
				c.state[b.address].value, c.planned[b.address].value)
		}
	}
	if said := warned(c.warnings); said != "" {
		return "a plan warns: " + said
	}
	c = p.core(s, now, adopts)
	if unprotected := p.unprotected(); unprotected != nil {
		c.config = unprotected
		c.run(t.Context())
		if problems := c.problems(); problems != "" {
			return "taking the protection away: " + problems
		}
		c = p.core(s, c.state, adopts)
	}
	c.config = nil
	c.run(t.Context())
	if problems := c.problems(); problems != "" {
		return "destroying: " + problems
	}
	for _, parent := range p.parents {
		if _, diags := c.destroy(parent.block.typ, parent.object); errorsOf(diags) != "" {
			return "destroying the " + parent.block.address + ": " + errorsOf(diags)
		}
	}
	if left := strings.Join(s.leftovers(), "\n"); left != p.empty {
		return "destroying leaves\n" + left + "\nwhere was\n" + p.empty
	}
	return ""
}
