// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

func TestConcurrentReadsShareOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		poolID := pool.PoolRef().ID()
		var ids []string
		for range 60 {
			ids = append(ids, c.put(backends.Machine{Marks: backends.Marks{Managed: true, Pool: poolID}}))
		}
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				if m, err := account.Read(t.Context(), poolID, id); err != nil || m.ID != id {
					t.Errorf("%s: %+v, %v", id, m, err)
				}
			})
		}
		wg.Wait()
		if lists, gets := c.called("list"), c.called("get"); lists != 1 || gets != 0 {
			t.Errorf("%d lists, %d gets for 60 reads", lists, gets)
		}
	})
}

func TestReadOfAMachineThatListsLackIsAGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		id := c.put(backends.Machine{Name: "unmarked"})
		if m, err := account.Read(t.Context(), pool.PoolRef().ID(), id); err != nil || m.Name != "unmarked" {
			t.Errorf("%+v, %v", m, err)
		}
		if _, err := account.Read(t.Context(), pool.PoolRef().ID(), "404"); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReaderWantsAListAsFreshAsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		r := machineReader(c)
		list := func(since time.Time) {
			t.Helper()
			if _, err := r.list(t.Context(), backends.Filter{Pool: "p"}, since, nil); err != nil {
				t.Fatal(err)
			}
		}
		list(time.Now())
		time.Sleep(10 * time.Second)
		list(time.Now().Add(-20 * time.Second))
		if n := c.called("list"); n != 1 {
			t.Errorf("%d lists; an old one was good enough", n)
		}
		list(time.Now())
		if n := c.called("list"); n != 2 {
			t.Errorf("%d lists; an old one was not good enough", n)
		}
	})
}

func TestOneCallerGivingUpDoesNotEndTheListForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listed = make(chan struct{})
		r := machineReader(c)
		quitter, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		for _, ctx := range []context.Context{quitter, t.Context()} {
			go func() {
				_, err := r.list(ctx, backends.Filter{Pool: "p"}, time.Now(), nil)
				results <- err
			}()
			synctest.Wait()
		}
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the quitter got %v", err)
		}
		close(c.listed)
		if err := <-results; err != nil {
			t.Errorf("the other got %v", err)
		}
		if n := c.called("list"); n != 1 {
			t.Errorf("%d lists", n)
		}
	})
}

func TestListNobodyWaitsForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listed = make(chan struct{}) // never closed: only its context can end the list
		r := machineReader(c)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.list(ctx, backends.Filter{Pool: "p"}, time.Now(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		// A goroutine left behind would deadlock the bubble.
	})
}

func TestFailedListIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listErr = backends.Errorf(backends.ProviderError, "down")
		r := machineReader(c)
		if _, err := r.list(t.Context(), backends.Filter{Pool: "p"}, time.Now(), nil); !backends.HasCode(err, backends.ProviderError) {
			t.Errorf("got %v", err)
		}
		c.listErr = nil
		if _, err := r.list(t.Context(), backends.Filter{Pool: "p"}, time.Now(), nil); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestOwnWritesAreSeenByTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.listLag = time.Minute
		account, pool := c.account(t)
		m, owned := created(t, account, pool)
		found, err := account.machines.reader.byKey(t.Context(), backends.Filter{Pool: owned.Pool}, owned.Key, time.Now())
		if err != nil || len(found) != 1 || found[0].ID != m.ID {
			t.Errorf("a machine made just now: %+v, %v", found, err)
		}
		if _, err := account.Delete(t.Context(), owned); err != nil {
			t.Fatal(err)
		}
		found, err = account.machines.reader.byKey(t.Context(), backends.Filter{Pool: owned.Pool}, owned.Key, time.Now())
		if err != nil || len(found) != 0 {
			t.Errorf("a machine deleted just now: %+v, %v", found, err)
		}
	})
}

func machineReader(c *cloud) *reader[backends.Machine] {
	return machineKind(&Account{Backend: c}, lags{list: defaultListLag}).reader
}

// Only a list that lags lacks what we made; one that has shown it and no longer does
// says that it is gone.
func TestMachineThatGoesSoonAfterOurWriteIsSeenToBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		account, pool := c.account(t)
		account.machines.reader.lags.list = time.Minute
		created, err := account.Create(t.Context(), wish(pool, "web-0"))
		if err != nil {
			t.Fatal(err)
		}
		m := created.Machine
		begun := time.Now()
		if left, err := account.Delete(t.Context(), Owned{Pool: m.Marks.Pool, ID: m.ID, Key: m.Marks.Key, Claim: m.Marks.Claim}); left || err != nil {
			t.Fatal(left, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the deletion took %s", took)
		}

		second, err := account.Create(t.Context(), wish(pool, "web-1"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.mu.Lock()
		delete(c.machines, second.Machine.ID)
		c.mu.Unlock()
		time.Sleep(refreshAge + time.Second)
		if _, err := account.Read(t.Context(), m.Marks.Pool, second.Machine.ID); !backends.HasCode(err, backends.NotFound) {
			t.Errorf("a machine that someone else deleted: %v", err)
		}
	})
}
