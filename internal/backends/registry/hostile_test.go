// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
)

const (
	// mostCalls is how many of a method's requests get a hostile answer, each by itself:
	// what follows repeats them.
	mostCalls = 6
	// stride: without TORTURE each kind of answer is given to one request, so many after
	// that of the kind before it.
	stride = 7
	// mostMemory bounds what one answer may cost in bytes, garbage included.
	mostMemory = 200 << 20
)

// Each kind of hostile answer, to each call of the contract, from each of its requests
// on: the end is an error that says so, or a result, in time. TORTURE=1 plays all, else
// one of each kind is.
func TestHostileAnswers(t *testing.T) {
	type schedule struct {
		act
		nth int
	}
	kinds := kindsOfAnswers()
	all := clouds()
	for turn, c := range all {
		t.Run(c.id, func(t *testing.T) {
			var schedules []schedule
			acts := c.acts(t)
			for _, a := range acts {
				for nth := range min(c.requests(t, a), mostCalls) {
					schedules = append(schedules, schedule{a, nth + 1})
				}
			}
			played, memory := 0, 0
			for i, kind := range slices.Sorted(maps.Keys(kinds)) {
				chosen := schedules
				if os.Getenv("TORTURE") == "" {
					chosen = schedules[i*stride%len(schedules):][:1]
					if strings.HasPrefix(kind, "50 MiB") && i%len(all) != turn {
						continue // it takes long, and what it tries is the same for all clouds
					}
				}
				for _, s := range chosen {
					played++
					problems, each := c.suffer(t, s.act, s.nth, kinds[kind]())
					memory = max(memory, each)
					for _, problem := range problems {
						t.Errorf("%s, request %d on: %s: %s", s.name, s.nth, kind, problem)
					}
				}
			}
			t.Logf("%d of %d schedules: %d kinds of answers to %d calls of the contract; one answer cost %d MiB at most",
				played, len(schedules)*len(kinds), len(kinds), len(acts), memory>>20)
		})
	}
}

// acts are the calls of the contract that the cloud's backend has.
func (c cloud) acts(t *testing.T) (out []act) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, b := c.build(t)
		c.fill(ctx, t, b)
		out = b.acts(t)
	})
	return out
}

// requests is how many requests a call makes where all goes well.
func (c cloud) requests(t *testing.T, a act) (out int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, b := c.build(t)
		c.fill(ctx, t, b)
		b.wire.arm(1, nil)
		if err := a.do(ctx, b); err != nil && backends.AsError(err) == nil {
			t.Errorf("%s, unharmed: %v", a.name, err)
		}
		out = b.wire.count()
	})
	return out
}

// suffer runs a call whose nth request and all after it get a hostile answer, and tells
// which promises that broke, and what each answer cost in bytes of memory.
func (c cloud) suffer(t *testing.T, a act, nth int, answer hostile) (problems []string, memory int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, b := c.build(t)
		c.fill(ctx, t, b)
		b.wire.arm(nth, answer)
		b.log.lines, *b.warnings = nil, nil
		ctx, cancel := context.WithTimeout(ctx, operationTime)
		defer cancel()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		err := guarded(func() error { return a.do(ctx, b) })
		if took := time.Since(begun); took > operationTime+10*time.Second {
			problems = append(problems, "it took "+took.String())
		}
		runtime.ReadMemStats(&after)
		synctest.Wait() // what goes on behind the call ends by itself
		if memory = int(after.TotalAlloc-before.TotalAlloc) / max(1, b.wire.count()); memory > mostMemory {
			problems = append(problems, fmt.Sprintf("each answer cost %d MiB", memory>>20))
		}
		crash, panics := errors.AsType[*crashed](err)
		switch {
		case panics:
			problems = append(problems, crash.Error())
		case err != nil && backends.AsError(err) == nil && !errors.Is(err, context.DeadlineExceeded):
			problems = append(problems, fmt.Sprintf("%T: %v", err, err))
		}
		for _, text := range slices.Concat(shown(err), b.log.lines, *b.warnings) {
			if problem := unfit(text); problem != "" && !panics {
				problems = append(problems, fmt.Sprintf("%s: %.300q", problem, text))
			}
		}
		problems = append(problems, b.wire.check()...)
	})
	return problems, memory
}

// crashed is a panic.
type crashed struct {
	what  any
	stack []byte
}

func (c *crashed) Error() string { return fmt.Sprintf("it panics: %v\n%s", c.what, c.stack) }

func guarded(do func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = &crashed{what, debug.Stack()}
		}
	}()
	return do()
}

// shown is all that a user may see of an error.
func shown(err error) []string {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []string
		for _, e := range joined.Unwrap() {
			out = append(out, shown(e)...)
		}
		return out
	}
	out := []string{err.Error()}
	e := backends.AsError(err)
	if e == nil {
		return out
	}
	out = append(out, e.Message, e.Remedy)
	for name, value := range e.Details {
		out = append(out, name, fmt.Sprint(value))
	}
	return out
}

// unfit says why a text must not be shown or logged, "" when it may.
func unfit(text string) string {
	switch {
	case strings.Contains(text, credential):
		return "it holds the credential"
	case !utf8.ValidString(text):
		return "it is no UTF-8"
	case len(text) > 32<<10:
		return fmt.Sprintf("it is %d bytes long", len(text))
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }):
		return "it holds control characters"
	default:
		return ""
	}
}

// Every registered cloud is tried.
func TestEveryCloudIsTried(t *testing.T) {
	known, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	var tried []string
	for _, c := range clouds() {
		tried = append(tried, c.id)
	}
	if !slices.Equal(tried, known.IDs()) {
		t.Errorf("tried are %v, known %v", tried, known.IDs())
	}
}

// post makes something of the vendor's that a backend doesn't make.
func (b *bed) post(t *testing.T, path, body string) map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	got, err := b.wire.base.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	if _, err := buffer.ReadFrom(got.Body); err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(buffer.Bytes(), &out); err != nil || got.StatusCode > 299 {
		t.Fatalf("POST %s: status %d, %v: %s", path, got.StatusCode, err, buffer.String())
	}
	return out
}
