// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The model of the reader is the direct reader: it asks the cloud for each object
// when it is called. Whatever many callers, other hands and our own writes do at the
// same time, an answer of the reader must be one that the direct reader could have
// given at some moment between the time that the caller asked for and now, and no
// older than our own last write of that object. What fails must have had a cause.
func TestReaderAnswersAsADirectReaderWould(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			pageSize: rapid.IntRange(1, 4).Draw(rt, "objects per page"),
			phased:   rapid.Bool().Draw(rt, "phased"),
			failing:  rapid.IntRange(0, 3).Draw(rt, "the page that fails"),
			history:  map[string][]version{},
			wrote:    map[string]time.Time{},
		}
		if rapid.Bool().Draw(rt, "no page fails") {
			m.failing = 0
		}
		objects := rapid.IntRange(0, 12).Draw(rt, "objects at first")
		scripts := rapid.SliceOfN(rapid.SliceOfN(step(objects+3), 1, 6), 1, 8).Draw(rt, "scripts")
		synctest.Test(t, func(t *testing.T) {
			m.reader = &reader[backends.Machine]{
				noun: "machine", get: m.get, lists: m.list, phased: m.phased, lags: lags{list: time.Second},
			}
			for i := range objects {
				m.put(strconv.Itoa(i+1), "old", i%2 == 0)
			}
			time.Sleep(time.Hour) // what is there isn't new
			var wg sync.WaitGroup
			for _, script := range scripts {
				wg.Go(func() {
					for _, s := range script {
						m.play(t.Context(), s)
					}
				})
			}
			wg.Wait()
		})
		if len(m.problems) > 0 {
			rt.Fatal(m.problems[0])
		}
	})
}

// action is one thing that someone does, and how long he waits before.
type action struct {
	what  string
	id    string
	pause time.Duration
	age   time.Duration // how old an answer may be
	gives time.Duration // up after; 0: never
}

func step(ids int) *rapid.Generator[action] {
	return rapid.Custom(func(t *rapid.T) action {
		return action{
			what:  rapid.SampledFrom([]string{"read", "read", "read", "watch", "list", "write", "rename", "delete", "appear"}).Draw(t, "what"),
			id:    strconv.Itoa(rapid.IntRange(1, ids).Draw(t, "id")),
			pause: time.Duration(rapid.IntRange(0, 400).Draw(t, "pause in ms")) * time.Millisecond,
			age:   rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Millisecond, time.Second, time.Minute}).Draw(t, "age"),
			gives: rapid.SampledFrom([]time.Duration{0, 0, 0, 30 * time.Millisecond}).Draw(t, "gives up after"),
		}
	})
}

// model is a cloud that remembers what it was.
type model struct {
	reader   *reader[backends.Machine]
	pageSize int
	failing  int // the number of the page that fails; 0 for none
	phased   bool

	mu       sync.Mutex
	history  map[string][]version // by id
	wrote    map[string]time.Time // our last write of an object, when it ended
	shifts   []time.Time          // an object that comes or goes moves others to other pages
	problems []string
	names    int
}

// version is what an object was from a time on.
type version struct {
	from     time.Time
	there    bool
	name     string
	complete bool
}

const latency = 20 * time.Millisecond

var modelFilter = backends.Filter{Pool: "p"}

func (m *model) put(id, name string, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history[id] = append(m.history[id], version{time.Now(), true, name, complete})
}

func (m *model) now(id string) version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last(id)
}

func (m *model) last(id string) version {
	if h := m.history[id]; len(h) > 0 {
		return h[len(h)-1]
	}
	return version{}
}

func machineOf(id string, v version) backends.Machine {
	return backends.Machine{ID: id, Name: v.name, Marks: backends.Marks{Managed: true, Pool: modelFilter.Pool, Complete: v.complete}}
}

func (m *model) get(ctx context.Context, id string) (backends.Machine, error) {
	if err := backends.Sleep(ctx, latency); err != nil {
		return backends.Machine{}, err
	}
	v := m.now(id)
	if !v.there {
		return backends.Machine{}, backends.Errorf(backends.NotFound, "no %s", id)
	}
	return machineOf(id, v), backends.Sleep(ctx, latency)
}

func (m *model) list(ctx context.Context, f backends.Filter) (backends.Listing[backends.Machine], error) {
	page := func(ctx context.Context, number int) ([]backends.Machine, int, error) {
		if err := backends.Sleep(ctx, latency); err != nil {
			return nil, 0, err
		}
		if number == m.failing {
			return nil, 0, errPage
		}
		m.mu.Lock()
		var all []backends.Machine
		for id := range m.history {
			if v := m.last(id); v.there && (f.Phase == "" || !v.complete) {
				all = append(all, machineOf(id, v))
			}
		}
		m.mu.Unlock()
		slices.SortFunc(all, older[backends.Machine])
		pages := max(1, (len(all)+m.pageSize-1)/m.pageSize)
		return all[min(len(all), (number-1)*m.pageSize):min(len(all), number*m.pageSize)], pages, backends.Sleep(ctx, latency)
	}
	first, pages, err := page(ctx, 1)
	if err != nil {
		return backends.Listing[backends.Machine]{}, err
	}
	return backends.Paged(first, pages, func(ctx context.Context, number int) ([]backends.Machine, error) {
		found, _, err := page(ctx, number)
		return found, err
	}), nil
}

var errPage = errors.New("a page failed")

func (m *model) play(ctx context.Context, s action) {
	time.Sleep(s.pause)
	since := time.Now().Add(-s.age)
	if s.gives > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.gives)
		defer cancel()
	}
	m.mu.Lock()
	wrote := m.wrote[s.id]
	m.names++
	name := fmt.Sprintf("name %d", m.names)
	before := m.last(s.id)
	m.mu.Unlock()
	switch s.what {
	case "read":
		o, _, err := m.reader.read(ctx, modelFilter, s.id, since)
		m.judge(ctx, s, since, wrote, &o, err)
	case "watch":
		filter := modelFilter
		if m.phased {
			filter.Phase = backends.PhaseMaking
		}
		defer m.reader.watching(filter)()
		o, _, err := m.reader.watch(ctx, filter, s.id, since)
		m.judge(ctx, s, since, wrote, &o, err)
	case "list":
		found, err := m.reader.list(ctx, modelFilter, since, func(o backends.Machine) bool { return o.ID == s.id })
		if err != nil {
			m.judge(ctx, s, since, wrote, nil, err)
			return
		}
		if len(found) > 0 {
			m.judge(ctx, s, since, wrote, &found[0], nil)
		} else if !m.shifted(since) {
			m.judge(ctx, s, since, wrote, nil, backends.Errorf(backends.NotFound, "not listed"))
		}
	case "write": // as our calls change an object
		if !before.there {
			return
		}
		m.put(s.id, name, true)
		time.Sleep(latency)
		if v := m.now(s.id); v.there && v.name == name {
			m.reader.wrote(machineOf(s.id, v))
			m.mu.Lock()
			m.wrote[s.id] = time.Now()
			m.mu.Unlock()
		}
	case "rename": // as other hands change it
		if before.there {
			m.put(s.id, name, before.complete)
		}
	case "appear":
		if !before.there {
			m.put(s.id, name, false)
			m.shift()
		}
	case "delete":
		if before.there {
			m.mu.Lock()
			m.history[s.id] = append(m.history[s.id], version{from: time.Now()})
			m.mu.Unlock()
			m.shift()
		}
	}
}

func (m *model) shift() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shifts = append(m.shifts, time.Now())
}

// shifted tells whether an object came or went since a time, so that a list which
// was being read may have missed another.
func (m *model) shifted(since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.shifts, func(at time.Time) bool { return !at.Before(since) })
}

// judge holds an answer against all that a direct reader could have said meanwhile.
func (m *model) judge(ctx context.Context, s action, since, wrote time.Time, o *backends.Machine, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wrote.After(since) {
		since = wrote
	}
	problem := ""
	gone := backends.HasCode(err, backends.NotFound)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errPage):
		if m.failing == 0 {
			problem = "a page failed that didn't"
		}
	case err != nil && !gone:
		problem = err.Error()
	case !m.could(s.id, since, func(v version) bool {
		return gone && !v.there || !gone && v.there && o != nil && v.name == o.Name
	}):
		problem = fmt.Sprintf("gone %t, %+v; it was %+v", gone, o, m.history[s.id])
	}
	if problem != "" {
		m.problems = append(m.problems, fmt.Sprintf("%+v, asked for since %s: %s", s, since.Format(time.StampMilli), problem))
	}
}

// could tells whether an object was so at some moment between since and now.
func (m *model) could(id string, since time.Time, so func(version) bool) bool {
	h := append([]version{{}}, m.history[id]...)
	for i, v := range h {
		if ended := i+1 < len(h) && h[i+1].from.Before(since); !ended && so(v) {
			return true
		}
	}
	return false
}
