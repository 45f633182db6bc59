// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, remaining int
		takes            time.Duration // for five requests at once
	}{
		"plenty":         {3600, 3000, 0},
		"a tenth":        {3600, 360, 0},
		"less":           {3600, 359, 4 * time.Second},
		"nothing":        {3600, 0, 4 * time.Second},
		"a small limit":  {5, 0, 48 * time.Minute},
		"not said":       {0, 0, 0},
		"nonsense":       {-1, -1, 0},
		"left of little": {5, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Pace{Window: time.Hour}
				p.Saw(tt.limit, tt.remaining)
				start := time.Now()
				var group sync.WaitGroup
				for range 5 {
					group.Go(func() {
						if err := p.Wait(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if took := time.Since(start); took != tt.takes {
					t.Errorf("took %v, want %v", took, tt.takes)
				}
				// More is left again: all that come now are free.
				p.Saw(3600, 3600)
				start = time.Now()
				for range 5 {
					if err := p.Wait(t.Context()); err != nil || time.Since(start) != 0 {
						t.Errorf("after %v: %v", time.Since(start), err)
					}
				}
			})
		})
	}
}

func TestPaceEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pace{Window: time.Hour}
		p.Saw(60, 0)
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		// Also where a request would be given grace: none was sent.
		call, done := Grace(ctx)
		defer done()
		start := time.Now()
		if err := p.Wait(call); !errors.Is(err, stop) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
