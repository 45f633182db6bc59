// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// The tests named after surprises begin with an object that was made and recorded, and
// let something happen to it, or to its record, that no run of ours did. Whatever it is
// must hold to DESIGN.md §6: the plan says what happens; an apply converges, or refuses
// with a clear error and changes nothing; no object of another state is touched; none is
// made twice and none is lost; what is planned after that is nothing.

// thing is a kind of object in a cloud, as a configuration whose last block is the one
// that is surprised.
type thing struct {
	name string
	to   blocks
	// id is the attribute with the cloud's id.
	id string
	// change is an edit of the block that the cloud does in place; nil for none.
	change given
	// otherwise is an edit after which it would be made from other inputs; nil for none.
	otherwise given
	// fixed: its marks can't be rewritten.
	fixed bool
}

func (th thing) block() block { return th.to[len(th.to)-1] }

// edited is the configuration with an edit of the block.
func (th thing) edited(more given) blocks {
	out := slices.Clone(th.to)
	b := th.block()
	b.given = with(b.given, more)
	out[len(out)-1] = b
	return out
}

// neighbour is the name of an object of another state in the same pool, an instance or a
// volume: it must be as it was, whatever happens.
const neighbour = "neighbour"

// surprised is a thing in a cloud, made and recorded.
type surprised struct {
	*piece
	thing
	// neighbours is what another state has.
	neighbours recorded
}

// everyThing calls for each thing of each cloud.
func everyThing(t *testing.T, do func(t *testing.T, p *surprised)) {
	t.Helper()
	t.Setenv("PROXMOX_TOKEN", "root@pam!tofu=secret")
	for _, m := range matrixClouds(t) {
		t.Run(m.name, func(t *testing.T) {
			for _, th := range things(m.name, "") {
				t.Run(th.name, func(t *testing.T) { do(t, m.surprised(t, th.name)) })
			}
		})
	}
}

// surprised makes a thing, and something of another state beside it.
func (m *matrixCloud) surprised(t *testing.T, name string) *surprised {
	t.Helper()
	out := &surprised{}
	own := *m
	own.operations = func(network string) (all []operation) {
		for _, th := range things(m.name, network) {
			if th.name == name {
				out.thing = th
			}
			beside := th.to[0]
			beside.address = strings.Replace(beside.address, ".", "."+neighbour+"-", 1)
			beside.given = with(beside.given, given{"name": neighbour})
			all = append(all, operation{
				name: th.name, from: append(slices.Clone(th.to), beside), to: th.to,
				disturb: func(_ emulator.Service, s state) {
					out.neighbours = s[beside.address]
					delete(s, beside.address)
				},
			})
		}
		return all
	}
	out.piece = &piece{matrixCloud: &own, operation: operation{name: name}}
	synctest.Test(t, func(t *testing.T) { out.prepare(t) })
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// record is what the state says of the thing.
func (p *surprised) record(s state) recorded { return s[p.block().address] }

// row is the object with an id in the cloud; "" when it is gone.
func (s *stage) row(id string) string {
	for _, r := range s.rows(s.service) {
		if r.id == id {
			return r.text
		}
	}
	return ""
}

// holds is everything in the cloud by its ids.
func (s *stage) holds() map[string]string {
	out := map[string]string{}
	for _, r := range s.rows(s.service) {
		out[r.id] = r.text
	}
	return out
}

// code begins the summary of an error.
var code = regexp.MustCompile(`^([A-Z][A-Z_]+): \S`)

// summaries are what diagnostics say, each once: errors by their codes, warnings by
// their summaries.
func summaries(diags []*tfprotov6.Diagnostic) string {
	var out []string
	for _, d := range diags {
		text := d.Summary
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			text = "!"
			if found := code.FindStringSubmatch(d.Summary); found != nil {
				text = "!" + found[1]
			}
		} else if found := code.FindStringSubmatch(d.Summary); found != nil && !strings.HasPrefix(d.Summary, "CONFLICT: ") {
			text = found[1]
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return ""
	}
	return " [" + strings.Join(out, ", ") + "]"
}

// meets is what happens from a moment on with a configuration: a plan, an apply, a
// further plan, and the end of it all, in a few words. What must hold in any case is an
// error of the test. settled are called before the end.
func (p *surprised) meets(t *testing.T, s *stage, now state, pool string, config blocks, settled ...func()) string {
	t.Helper()
	address := p.block().address
	before, was := s.holds(), p.record(now)
	begin := func(now state, config blocks) *core { return newCore(s.process(), now, pool, config) }
	said := func(c *core) string { return summaries(append(slices.Clone(c.errors), c.warnings...)) }
	c := begin(now, config)
	planned := c.plan(t.Context())
	out := "plan " + c.actions[address] + said(c)
	p.sound(t, s, c, "the plan")
	if !maps.Equal(s.holds(), before) {
		t.Errorf("the plan changed the cloud: %v to %v", before, s.holds())
	}
	if planned {
		warnings := len(c.warnings)
		c.apply(t.Context())
		p.sound(t, s, c, "the apply")
		switch {
		case len(c.errors) > 0:
			out += "; apply" + summaries(append(slices.Clone(c.errors), c.warnings[warnings:]...))
		case len(c.warnings) > warnings:
			out += "; apply ok" + summaries(c.warnings[warnings:])
		case c.actions[address] != actNone:
			out += "; apply ok"
		}
	}
	refused := len(c.errors) > 0
	// One object at most is ours, and none was made beside it.
	id := p.record(c.state).attribute(p.id)
	if id != was.attribute(p.id) {
		out += "; another"
	}
	for there := range s.holds() {
		if _, known := before[there]; !known && there != id && !refused {
			t.Errorf("%s was made and isn't recorded: %s", there, s.row(there))
		}
	}
	again := begin(c.state, config)
	again.plan(t.Context())
	p.sound(t, s, again, "a further plan")
	switch {
	case len(again.errors) > 0:
		out += "; again" + said(again)
	case refused:
		out += "; again " + again.actions[address]
	case again.actions[address] != actNone || said(again) != "":
		out += "; again " + again.actions[address] + said(again)
		if again.actions[address] != actNone {
			t.Logf("from\n%s\nto\n%s", again.state[address].value, again.planned[address].value)
		}
	}
	for _, check := range settled {
		check()
	}
	// Ours goes with the resource, or is left alone, with a word about it.
	end := begin(again.state, config)
	if len(again.errors) > 0 {
		end = begin(c.state, config)
	}
	end.config = slices.DeleteFunc(slices.Clone(config), func(b block) bool { return b.address == address })
	end.run(t.Context())
	p.sound(t, s, end, "the destruction")
	_, still := s.holds()[id]
	if id == "" {
		id = was.attribute(p.id)
		_, still = s.holds()[id]
	}
	_, recorded := end.state[address]
	switch {
	case len(end.errors) > 0:
		out += "; destroy" + summaries(end.errors)
		if !recorded {
			t.Error("the destruction failed and forgot the object")
		}
	case recorded:
		t.Error("the destruction succeeded, and the object is still recorded")
	case still && len(end.warnings) == 0:
		t.Errorf("the object is forgotten without a word: %s", s.row(id))
	case still:
		out += "; left" + summaries(end.warnings)
	default:
		out += "; gone"
	}
	return out
}

// sound fails where something is wrong whatever happened: an error without a code, a rule
// of the protocol that is broken, a neighbour that was touched.
func (p *surprised) sound(t *testing.T, s *stage, c *core, when string) {
	t.Helper()
	for _, d := range c.errors {
		if !code.MatchString(d.Summary) {
			t.Errorf("%s: an error without a code: %s: %s", when, d.Summary, d.Detail)
		}
	}
	for _, d := range append(slices.Clone(c.errors), c.warnings...) {
		if text := d.Summary + d.Detail; strings.Contains(text, `""`) || strings.Contains(text, "()") || strings.Contains(text, "(, ") {
			t.Errorf("%s: something is missing in %s: %s", when, d.Summary, d.Detail)
		}
	}
	for _, broken := range c.broken {
		t.Errorf("%s: %s", when, broken)
	}
	id := p.neighbours.attribute(p.idOf(p.neighbours))
	if row := s.row(id); !strings.Contains(row, p.neighbours.attribute("claim")) {
		t.Errorf("%s: the neighbour is %q", when, row)
	}
}

func (p *surprised) idOf(r recorded) string {
	if r.block.typ == instanceType {
		return "machine_id"
	}
	return "volume_id"
}

// altered is a state in which an attribute of the thing has another value.
func (p *surprised) altered(t *testing.T, now state, name string, value any) state {
	t.Helper()
	out := maps.Clone(now)
	r := p.record(now)
	typ := p.types[r.block.typ]
	var values map[string]tftypes.Value
	if err := r.value.As(&values); err != nil {
		t.Fatal(err)
	}
	values = maps.Clone(values)
	values[name] = tftypes.NewValue(typ.AttributeTypes[name], value)
	r.value = tftypes.NewValue(typ, values)
	out[r.block.address] = r
	return out
}

// expect compares what happened with what is wanted.
func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// later is a stage at the moment when the thing was made, and the state then.
func (p *surprised) later(t *testing.T) (*stage, state) {
	t.Helper()
	return p.at(t, p.begin), maps.Clone(p.begin.state)
}

// What happens most often.
const (
	// unmoved: nothing is planned and nothing is said.
	unmoved = "plan none; gone"
	// mended: the plan says what was changed, and the apply takes it back.
	mended = "plan update [Changed outside]; apply ok; gone"
	// shown: it is only said, each time.
	shown = "plan none [Changed outside]; again none [Changed outside]; gone"
	// notOurs: without marks it is neither changed nor deleted.
	notOurs = "plan none [ACCESS_DENIED]; again none [ACCESS_DENIED]; destroy [!ACCESS_DENIED]"
	// lostData: it is gone, and not made again by itself.
	lostData = "plan none [NOT_FOUND]; again none [NOT_FOUND]; gone"
	// madeAnew: it is gone, and another one is planned.
	madeAnew = "plan create [NOT_FOUND]; apply ok; another; gone"
	// recordedAnew: only the state changes.
	recordedAnew = "plan update; apply ok; gone"
	// theirs: another state has it, and keeps it.
	theirs = "plan none [CONFLICT: claimed by another state]; again none [CONFLICT: claimed by another state]; " +
		"left [CONFLICT: claimed by another state, CONFLICT: not deleted]"
	// theirsToChange is the same where the configuration changes too.
	theirsToChange = "plan update [CONFLICT: claimed by another state]; apply [!CONFLICT]; again update; " +
		"left [CONFLICT: claimed by another state, CONFLICT: not deleted]"
	// distrusted: the state contradicts itself, so nothing is done by it.
	distrusted = "plan  [!INVALID_STATE]; again [!INVALID_STATE]; destroy [!INVALID_STATE]"
	// misnumbered: what the state has as the cloud's id is none.
	misnumbered = "plan  [!INVALID_INPUT]; again [!INVALID_INPUT]; destroy [!INVALID_INPUT]"
)
