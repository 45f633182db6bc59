// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package recording

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/conformance"
)

// Player is a transport that answers from a recording. A request is matched by its
// case, method, url and body, with what the recording leaves out left out.
//
// Requests that change something are answered in their recorded order. Reads are
// answered from what was recorded between the same two changes: a replay polls at
// other moments than the recorded run did, so a read that comes once more than
// recorded gets the last answer again, and one that is left over is passed by.
type Player struct {
	mu      sync.Mutex
	entries []*entry
	// cursors are per case the index of the change that was answered last.
	cursors map[string]int
}

type entry struct {
	index    int
	caseName string
	key      string // method, url and body
	change   bool
	used     bool
	answer   cassette.Response
}

// NewPlayer reads a recording.
func NewPlayer(file string) (*Player, error) {
	c, err := cassette.LoadWithFS("cassette", oneFile(file))
	if err != nil {
		return nil, err
	}
	p := &Player{cursors: map[string]int{}}
	for index, i := range c.Interactions {
		q := i.Request
		p.entries = append(p.entries, &entry{
			index: index, caseName: q.Headers.Get(caseHeader), change: changes(q.Method), answer: i.Response,
			key: matchKey(q.Method, q.URL, q.Headers.Get("Content-Type"), q.Body),
		})
	}
	return p, nil
}

func changes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

func matchKey(method, address, contentType, body string) string {
	return method + " " + cleanURL(address) + "\n" + cleanBody(contentType, body)
}

// RoundTrip implements [http.RoundTripper]. A request that the recording has no
// answer to fails for good.
func (p *Player) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if closeErr := r.Body.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	key := matchKey(r.Method, r.URL.String(), r.Header.Get("Content-Type"), string(body))
	answer := p.find(conformance.CaseOf(r.Context()), key, changes(r.Method))
	if answer == nil {
		return nil, backends.Errorf(backends.ProviderError, "The recording has no answer to %s %s.", r.Method, unqueried(r.URL)).
			WithRemedy("Replay with the arguments of the recorded run (uri, offer, image, region, prefix); if the provider changed since, record again.")
	}
	return &http.Response{
		Status: answer.Status, StatusCode: answer.Code,
		Proto: answer.Proto, ProtoMajor: answer.ProtoMajor, ProtoMinor: answer.ProtoMinor,
		Header: answer.Headers.Clone(), Body: io.NopCloser(strings.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)), Request: r,
	}, nil
}

// unqueried is an address as messages show it.
func unqueried(u *url.URL) string { return fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.Path) }

func (p *Player) find(caseName, key string, change bool) *cassette.Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	var own, all []*entry
	for _, e := range p.entries {
		if e.key == key {
			all = append(all, e)
			if e.caseName == caseName {
				own = append(own, e)
			}
		}
	}
	candidates := own
	if len(candidates) == 0 && !change {
		// What is read once for all cases (a catalog) is of the case that came first.
		candidates = all
	}
	var e *entry
	if change {
		e = p.nextChange(candidates)
	} else {
		e = p.nextRead(caseName, candidates)
	}
	if e == nil {
		return nil
	}
	e.used = true
	if change {
		p.cursors[caseName] = e.index
	}
	return &e.answer
}

func (p *Player) nextChange(candidates []*entry) *entry {
	for _, e := range candidates {
		if !e.used {
			return e
		}
	}
	return nil
}

// nextRead prefers an answer of the same stretch between two changes: the next one,
// else the last one again. Failing that, what was answered nearest after it, then
// before it.
func (p *Player) nextRead(caseName string, candidates []*entry) *entry {
	cursor, ok := p.cursors[caseName]
	if !ok {
		cursor = -1
	}
	end := math.MaxInt
	for _, e := range p.entries {
		if e.change && !e.used && e.caseName == caseName && e.index > cursor {
			end = e.index
			break
		}
	}
	var again, later, earlier *entry
	for _, e := range candidates {
		switch {
		case e.index <= cursor:
			earlier = e
		case e.index < end && !e.used:
			return e
		case e.index < end:
			again = e
		case later == nil:
			later = e
		}
	}
	switch {
	case again != nil:
		return again
	case later != nil:
		return later
	default:
		return earlier
	}
}

// NoSecrets resolves every reference to a placeholder: a replay needs none.
type NoSecrets struct{}

// Resolve implements [backends.Secrets].
func (NoSecrets) Resolve(context.Context, string) (string, error) { return "replay", nil }

// Forget implements [backends.Secrets].
func (NoSecrets) Forget(string) {}
