// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
)

// completed are a machine's marks with the completion mark.
func completed(m backends.Machine) backends.Marks {
	marks := m.Marks
	marks.Complete = true
	return marks
}

// number is a machine's id.
func number(t *testing.T, m backends.Machine) int64 {
	t.Helper()
	id, ok := parseID(m.ID)
	if !ok {
		t.Fatalf("the id is %q", m.ID)
	}
	return int64(id)
}

func TestMarkCompleteIsOneCall(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	first := made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} })
	cloud.ClearCalls()
	got, err := c.MarkMachine(t.Context(), first, completed(first))
	if err != nil || !got.Marks.Complete || got.Labels["role"] != "web" {
		t.Fatalf("got %+v, %v", got, err)
	}
	// The project's first has to make the tag.
	if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/tags/better-compute:complete/resources": 2, "POST /v2/tags": 1}) {
		t.Errorf("calls %v", got)
	}
	second := made(t, c, func(s *backends.MachineSpec) { s.Marks.Key = "inst_another" })
	cloud.ClearCalls()
	if _, err := c.MarkMachine(t.Context(), second, completed(second)); err != nil {
		t.Fatal(err)
	}
	if got := counts(cloud); !maps.Equal(got, map[string]int{"POST /v2/tags/better-compute:complete/resources": 1}) {
		t.Errorf("calls %v", got)
	}
	for _, m := range []backends.Machine{first, second} {
		if back, err := c.GetMachine(t.Context(), m.ID); err != nil || back.Marks != completed(m) {
			t.Errorf("got %+v, %v", back.Marks, err)
		}
	}
	cloud.ClearCalls()
	if _, err := c.MarkMachine(t.Context(), got, got.Marks); err != nil ||
		!maps.Equal(counts(cloud), map[string]int{"GET /v2/droplets/ID": 1}) {
		t.Errorf("nothing to write: %v, %v", counts(cloud), err)
	}
}

// Of many that come up together only one finds that a tag must be made, also in a
// project where someone deletes it meanwhile.
func TestMarkManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cloud := emulatedClient(t, emulated.Options{Latency: 100 * time.Millisecond})
		const n = 12
		var machines []backends.Machine
		for i := range n {
			machines = append(machines, made(t, c, func(s *backends.MachineSpec) { s.Marks.Key = fmt.Sprintf("inst_%d", i) }))
		}
		all := func() {
			t.Helper()
			cloud.ClearCalls()
			var group sync.WaitGroup
			for _, m := range machines {
				group.Go(func() {
					if _, err := c.MarkMachine(t.Context(), m, completed(m)); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		all()
		if got := len(cloud.Calls()); got != n+2 {
			t.Errorf("%d calls for %d machines: %v", got, n, counts(cloud))
		}
		send(t, cloud, "DELETE", "/v2/tags/better-compute:complete", nil)
		all()
		for _, d := range cloud.Droplets() {
			if !slices.Contains(d.Tags, "better-compute:complete") {
				t.Errorf("%s isn't complete", d.Name)
			}
		}
	})
}

func TestMarkTakeOver(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c, func(s *backends.MachineSpec) { s.Labels = map[string]string{"role": "web"} })
	cloud.SetTags(number(t, m), append(cloud.Droplets()[0].Tags, "better-compute:claim:zzz", "Better-Compute:Claim:YYY", "theirs"))
	marks := m.Marks
	marks.Claim, marks.Digest = "n3w", "iabcdef-o654321"
	got, err := c.MarkMachine(t.Context(), m, marks)
	if err != nil || got.Marks != marks {
		t.Fatalf("got %+v, %v", got.Marks, err)
	}
	back, err := c.GetMachine(t.Context(), m.ID)
	if err != nil || back.Marks != marks || back.Labels["role"] != "web" || len(back.Labels) != 2 {
		t.Errorf("got %+v, %v", back, err)
	}
	// Nothing is left of the claims seen, also of those that m didn't show, nor of the
	// old digest.
	for _, tag := range cloud.Tags() {
		if tag = strings.ToLower(tag); strings.Contains(tag, ":claim:") && tag != "better-compute:claim:n3w" || strings.HasSuffix(tag, "-r99zzzz") {
			t.Errorf("the tag %s is left", tag)
		}
	}
}

// Two who take over at the same time: wherever the calls of one end between those of
// the other, both then see the same winner.
func TestMarkTwoTakeOver(t *testing.T) {
	for stop := range 8 {
		synctest.Test(t, func(t *testing.T) {
			cloud := emulated.New(emulated.Options{})
			a := clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken})
			m := made(t, a)
			// b's whole takeover happens before a's call number stop.
			other := clientOf(t, emulator.Transport(cloud), &fixedSecrets{token: testToken})
			theirs := m.Marks
			theirs.Claim = "bbb"
			n := 0
			between := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
				if n == stop {
					if _, err := other.MarkMachine(t.Context(), m, theirs); err != nil {
						t.Error(err)
					}
				}
				n++
				return emulator.Transport(cloud).RoundTrip(r)
			}), &fixedSecrets{token: testToken})
			ours := m.Marks
			ours.Claim = "aaa"
			if _, err := between.MarkMachine(t.Context(), m, ours); err != nil {
				t.Fatal(err)
			}
			if n <= stop {
				return // a was done before
			}
			got, err := a.GetMachine(t.Context(), m.ID)
			if err != nil || got.Marks.Claim != "aaa" && got.Marks.Claim != "bbb" {
				t.Errorf("stop %d: %+v, %v", stop, got.Marks, err)
			}
		})
	}
}

func TestMarkAnUnmarkedMachine(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	m := made(t, c)
	cloud.SetTags(number(t, m), []string{"web"})
	if err := c.Tidy(t.Context(), m.Marks); err != nil {
		t.Fatal(err)
	}
	m, err := c.GetMachine(t.Context(), m.ID)
	if err != nil || m.Marks != (backends.Marks{}) {
		t.Fatalf("got %+v, %v", m.Marks, err)
	}
	marks := testSpec().Marks
	marks.Complete = true
	if m, err = c.MarkMachine(t.Context(), m, marks); err != nil || m.Marks != marks {
		t.Fatalf("got %+v, %v", m.Marks, err)
	}
	if m, err = c.GetMachine(t.Context(), m.ID); err != nil || m.Marks != marks || !maps.Equal(m.Labels, map[string]string{"web": ""}) {
		t.Fatalf("got %+v, %v", m, err)
	}
	// Without the marker it is nobody's, whatever else it has.
	if m, err = c.MarkMachine(t.Context(), m, backends.Marks{Key: marks.Key}); err != nil || m.Marks != (backends.Marks{}) {
		t.Fatalf("got %+v, %v", m.Marks, err)
	}
	// And away again, all of them.
	if m, err = c.MarkMachine(t.Context(), m, backends.Marks{}); err != nil || m.Marks != (backends.Marks{}) {
		t.Fatalf("got %+v, %v", m.Marks, err)
	}
	if got := cloud.Droplets()[0].Tags; !slices.Equal(got, []string{"web"}) {
		t.Errorf("tags %v", got)
	}
}

// Wherever a run that takes a machine's marks over dies, the machine has a claim, is
// managed, and the next run brings it to the same end.
func TestMarkIsInterruptible(t *testing.T) {
	for dies := range 12 {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cloud := emulatedClient(t, emulated.Options{})
				m := made(t, c)
				marks := completed(m)
				marks.Claim, marks.Digest = "n3w", "iabcdef-o654321"
				n := 0
				dying := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
					if n++; n > dies {
						return always(refusal(403, "forbidden", "dead")).RoundTrip(r)
					}
					return emulator.Transport(cloud).RoundTrip(r)
				}), &fixedSecrets{token: testToken})
				_, dead := dying.MarkMachine(t.Context(), m, marks)
				between, err := c.GetMachine(t.Context(), m.ID)
				if err != nil || !between.Marks.Managed || between.Marks.Claim == "" || between.Marks.Key != m.Marks.Key {
					t.Fatalf("dead at %d: %+v, %v", dies, between.Marks, err)
				}
				if _, err := c.MarkMachine(t.Context(), between, marks); err != nil {
					t.Fatal(err)
				}
				if got, err := c.GetMachine(t.Context(), m.ID); err != nil || got.Marks != marks {
					t.Errorf("dead at %d (%v): %+v, %v", dies, dead, got.Marks, err)
				}
			})
		})
	}
}

// A run that takes the marks away and dies leaves a machine that is either managed,
// with all that says whose it is, or nobody's; and complete only untouched.
func TestTakingMarksAwayIsInterruptible(t *testing.T) {
	for dies := range 12 {
		c, cloud := emulatedClient(t, emulated.Options{})
		m := made(t, c)
		m, err := c.MarkMachine(t.Context(), m, completed(m))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		dying := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if n++; n > dies {
				return always(refusal(403, "forbidden", "dead")).RoundTrip(r)
			}
			return emulator.Transport(cloud).RoundTrip(r)
		}), &fixedSecrets{token: testToken})
		_, dead := dying.MarkMachine(t.Context(), m, backends.Marks{})
		got, err := c.GetMachine(t.Context(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if half := got.Marks; half.Managed {
			half.Complete = true
			if half != m.Marks || n > 2 && got.Marks.Complete {
				t.Errorf("dead at %d (%v): %+v", dies, dead, got.Marks)
			}
		}
		if _, err := c.MarkMachine(t.Context(), got, backends.Marks{}); err != nil {
			t.Fatal(err)
		}
		if tags := cloud.Droplets()[0].Tags; len(tags) != 0 {
			t.Errorf("dead at %d: left %v", dies, tags)
		}
	}
}

func TestMarkAMachineThatIsGone(t *testing.T) {
	for _, before := range []bool{false, true} {
		c, cloud := emulatedClient(t, emulated.Options{})
		if before { // the tag is known to exist
			m := made(t, c)
			if _, err := c.MarkMachine(t.Context(), m, completed(m)); err != nil {
				t.Fatal(err)
			}
		}
		m := made(t, c)
		cloud.Delete(number(t, m))
		for _, marks := range []backends.Marks{completed(m), m.Marks, {}} {
			got, err := c.MarkMachine(t.Context(), m, marks)
			if e := wantError(t, err); e.Code != backends.NotFound || got.ID != m.ID {
				t.Errorf("got %v, %v", got.ID, e)
			}
		}
	}
}

func TestTidy(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	first := made(t, c)
	second := made(t, c, func(s *backends.MachineSpec) { s.Marks.Key, s.Marks.Claim, s.Marks.Digest = "inst_2", "claim2", "i2" })
	left := func() string {
		var out []string
		for _, tag := range cloud.Tags() {
			out = append(out, strings.TrimPrefix(tag, "better-compute:"))
		}
		return strings.Join(out, " ")
	}
	before := left()
	if err := c.Tidy(t.Context(), first.Marks); err != nil || left() != before {
		t.Errorf("while it carries them: %s, %v", left(), err)
	}
	cloud.Delete(number(t, first))
	if err := c.Tidy(t.Context(), first.Marks); err != nil {
		t.Fatal(err)
	}
	want := "better-compute account:pacct_0123456789abcdefghjkmnpqrs claim:claim2 digest:i2 key:inst_2 pool:pool_0123456789abcdefghjkmnpqrs"
	if left() != want {
		t.Errorf("left %s, want %s", left(), want)
	}
	cloud.Delete(number(t, second))
	cloud.ClearCalls()
	own := backends.Marks{Key: second.Marks.Key, Claim: second.Marks.Claim, Digest: second.Marks.Digest}
	if err := c.Tidy(t.Context(), own); err != nil || len(cloud.Calls()) != 4 {
		t.Errorf("%v, %v", counts(cloud), err)
	}
	pool := backends.Marks{Pool: second.Marks.Pool}
	if err := c.Tidy(t.Context(), pool); err != nil || left() != "better-compute account:pacct_0123456789abcdefghjkmnpqrs" {
		t.Errorf("without the pool: left %s, %v", left(), err)
	}
	for range 2 { // with the last account goes what all share; again changes nothing
		if err := c.Tidy(t.Context(), backends.Marks{Account: second.Marks.Account}); err != nil || left() != "" {
			t.Errorf("without the account: left %s, %v", left(), err)
		}
	}
	cloud.ClearCalls()
	if err := c.Tidy(t.Context(), backends.Marks{Managed: true, Complete: true, Key: "not a tag"}); err != nil || len(cloud.Calls()) != 0 {
		t.Errorf("%v, %v", counts(cloud), err)
	}
}

// An account that goes takes along the tags of objects that something else deleted;
// those of what is there, of any account, stay.
func TestTidyOfAnAccountSweeps(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	gone := made(t, c)
	made(t, c, func(s *backends.MachineSpec) {
		s.Marks = backends.Marks{Managed: true, Key: "inst_2", Claim: "claim2", Digest: "i2", Account: "another", Pool: "another"}
	})
	cloud.Delete(number(t, gone))
	if err := c.Tidy(t.Context(), backends.Marks{Account: gone.Marks.Account}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"better-compute", "better-compute:account:another", "better-compute:claim:claim2", "better-compute:digest:i2",
		"better-compute:key:inst_2", "better-compute:pool:another", "better-compute:pool:" + gone.Marks.Pool,
	}
	if left := cloud.Tags(); !slices.Equal(left, want) {
		t.Errorf("left %v", left)
	}
}

// A second Droplet of the same key and claim, as a lost answer can leave it, keeps
// them: they are what it is found and reaped by.
func TestTidyLeavesADuplicateItsTags(t *testing.T) {
	c, cloud := emulatedClient(t, emulated.Options{})
	first, second := made(t, c), made(t, c)
	cloud.Delete(number(t, first))
	if err := c.Tidy(t.Context(), first.Marks); err != nil {
		t.Fatal(err)
	}
	if got, err := c.GetMachine(t.Context(), second.ID); err != nil || got.Marks != second.Marks {
		t.Errorf("got %+v, %v", got.Marks, err)
	}
}

// An answer that doesn't say how many carry a tag is no leave to delete it.
func TestTidyNeedsACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, body := range []string{`{}`, `{"tag":{"name":"better-compute:key:k"}}`, `{"tag":{"name":"other","resources":{"count":0}}}`} {
			s := always(jsonAnswer(200, body))
			if err := scripted(t, s).Tidy(t.Context(), backends.Marks{Key: "k"}); err == nil {
				t.Errorf("%s is taken for unused", body)
			}
			for _, r := range s.requests {
				if !strings.HasPrefix(r, "GET ") {
					t.Errorf("%s: %s", body, r)
				}
			}
		}
	})
}
