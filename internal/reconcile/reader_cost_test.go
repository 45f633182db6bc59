// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// atOnce is how many objects a CLI refreshes at the same time (-parallelism).
const atOnce = 10

// paged is a cloud whose lists have pages of 50, and an account whose pool has n
// machines.
func paged(t *testing.T, n int) (c *cloud, account *Account, ref reference.Reference, ids []string) {
	c = newCloud()
	c.pageSize = 50
	account, ref = c.account(t)
	pool := ref.PoolRef().ID()
	for i := range n {
		ids = append(ids, c.put(backends.Machine{
			Created: time.Unix(int64(i), 0), Marks: backends.Marks{Managed: true, Pool: pool, Complete: true},
		}))
	}
	return c, account, ref, ids
}

// refreshed reads machines as a refresh does: in no order, some at a time.
func refreshed(t *testing.T, account *Account, pool string, ids []string) {
	t.Helper()
	slots := semaphore.NewWeighted(atOnce)
	var wg sync.WaitGroup
	for _, i := range rand.Perm(len(ids)) {
		if err := slots.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer slots.Release(1)
			if m, err := account.Read(t.Context(), pool, ids[i]); err != nil || m.ID != ids[i] {
				t.Errorf("%s: %+v, %v", ids[i], m, err)
			}
		})
	}
	wg.Wait()
}

// DESIGN.md §7: ceil(N/50) and one for the pool and one more.
func TestRefreshOfAWholePoolCostsItsPages(t *testing.T) {
	for _, n := range []int{1, 49, 50, 51, 100, 101, 120, 151, 201, 430, 1000, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, account, ref, ids := paged(t, n)
				pool := ref.PoolRef().ID()
				refreshed(t, account, pool, ids)
				calls, budget := c.called("list")+c.called("page")+c.called("get"), (n+49)/50+2
				if calls > budget {
					t.Errorf("%d lists, %d further pages, %d gets: more than %d calls", c.called("list"), c.called("page"), c.called("get"), budget)
				}
			})
		})
	}
}

func TestRefreshOfFewOfALargePoolDoesNotListIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, account, ref, ids := paged(t, 2000)
		pool := ref.PoolRef().ID()
		refreshed(t, account, pool, []string{ids[700], ids[1500], ids[1999]})
		refreshed(t, account, pool, []string{ids[700], ids[1500], ids[1999]}) // what was got is known
		if lists, pages, gets := c.called("list"), c.called("page"), c.called("get"); lists != 1 || pages != 0 || gets != 3 {
			t.Errorf("%d lists, %d further pages, %d gets", lists, pages, gets)
		}
		refreshed(t, account, pool, ids[1000:1010])
		if lists, pages, gets := c.called("list"), c.called("page"), c.called("get"); lists != 1 || pages != 39 || gets != 3 {
			t.Errorf("more of them: %d lists, %d further pages, %d gets", lists, pages, gets)
		}
	})
}

func TestPageThatFailsFailsOnlyThoseWhoNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, account, ref, ids := paged(t, 500)
		pool := ref.PoolRef().ID()
		c.pageErr = map[int]error{3: io.ErrUnexpectedEOF}
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				_, err := account.Read(t.Context(), pool, ids[i])
				if onIt := i >= 100 && i < 150; onIt != (err != nil) {
					t.Errorf("machine %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if _, err := account.machines.reader.list(t.Context(), backends.Filter{Pool: pool}, time.Now(), nil); err == nil {
			t.Error("a list lacked a page and didn't fail")
		}
		c.mu.Lock()
		c.pageErr = nil
		c.mu.Unlock()
		if _, err := account.Read(t.Context(), pool, ids[120]); err != nil {
			t.Errorf("the next read: %v", err)
		}
	})
}

// A list that its rest was read into later may have missed what moved meanwhile, so
// nobody concludes from it what isn't there.
func TestWholeListIsNotAnsweredByOneReadInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, account, ref, ids := paged(t, 200)
		pool := ref.PoolRef().ID()
		r := account.machines.reader
		refreshed(t, account, pool, ids[:1])
		refreshed(t, account, pool, ids[100:120])
		if c.called("list") != 1 || c.called("page") != 3 {
			t.Fatalf("%d lists, %d further pages", c.called("list"), c.called("page"))
		}
		if _, err := r.list(t.Context(), backends.Filter{Pool: pool}, time.Now().Add(-time.Minute), nil); err != nil {
			t.Fatal(err)
		}
		if c.called("list") != 2 || c.called("page") != 6 {
			t.Errorf("%d lists, %d further pages", c.called("list"), c.called("page"))
		}
	})
}

// One machine's wait in a large pool costs a call per poll, not the pool.
func TestWaitForOneOfALargePoolDoesNotListIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, account, pool, _ := paged(t, 500)
		m, owned := created(t, account, pool)
		lists, pages := c.called("list"), c.called("page")
		if lists > 1 || pages > 9 {
			t.Errorf("creating took %d lists with %d further pages", lists, pages)
		}
		if _, err := account.Delete(t.Context(), owned); err != nil {
			t.Fatal(err)
		}
		if c.called("list") != lists || c.called("page") != pages {
			t.Errorf("deleting %s took %d lists with %d further pages", m.ID, c.called("list")-lists, c.called("page")-pages)
		}
	})
}
