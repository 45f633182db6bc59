// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Leftover is an object that could not be cleaned up, or a look for objects that
// failed.
type Leftover struct {
	Object backends.About // only a noun, and an id or a key, may be known
	Err    error
}

// String names the object and says why it is still there.
func (l Leftover) String() string {
	o := l.Object
	switch {
	case o.ID == "":
		return fmt.Sprintf("%ss with the key %s may be left: %v", o.Noun, o.Marks.Key, l.Err)
	case o.Name == "":
		return fmt.Sprintf("the %s %s may be left: %v", o.Noun, o.ID, l.Err)
	default:
		return fmt.Sprintf("the %s %q (%s) is left: %v", o.Noun, o.Name, o.ID, l.Err)
	}
}

// cleanupPolls are the pauses between looks for an object that is being deleted,
// before scaling: the last one repeats.
var cleanupPolls = []time.Duration{250 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

// maxRefused bounds how often a deletion is asked for that the object's state doesn't
// allow.
const maxRefused = 10

// cleanUp deletes what carries a key of the trial's and what its calls returned,
// and says what it couldn't: snapshots first, which keep shared volumes from being
// deleted, then volumes, detached before, then machines. It goes on after the end of
// ctx.
//
// After a case that failed, or was interrupted, there may be things that neither
// lists nor a get show yet: then it looks again once lists have had their time.
func (r *run) cleanUp(ctx context.Context, t *Trial, failed bool) []Leftover {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.subject.CleanupTimeout)
	defer cancel()
	left := r.sweepAll(ctx, t)
	if !failed || len(left) > 0 || t.nothing() || backends.Sleep(ctx, r.subject.listLag()) != nil {
		return left
	}
	return r.sweepAll(ctx, t)
}

// nothing tells whether the case never began to make anything.
func (t *Trial) nothing() bool {
	for _, kind := range []*track{&t.machines, &t.volumes, &t.shares, &t.snapshots, &t.shareSnapshots} {
		if marks, ids := kind.kept(); len(marks) > 0 || len(ids) > 0 {
			return false
		}
	}
	return true
}

func (r *run) sweepAll(ctx context.Context, t *Trial) []Leftover {
	w := &sweep{run: r}
	if b, ok := r.backend.(backends.Snapshotter); ok {
		w.snapshots(ctx, &t.snapshots, b.Snapshots(), "snapshot")
	}
	if b, ok := r.backend.(backends.SharedSnapshotter); ok {
		w.snapshots(ctx, &t.shareSnapshots, b.SharedSnapshots(), "shared volume's snapshot")
	}
	if b, ok := r.backend.(backends.Volumer); ok {
		store := b.Volumes()
		w.volumes(ctx, &t.volumes, store, "volume", func(ctx context.Context, v backends.Volume) (bool, error) {
			var problems []error
			for _, m := range v.Machines {
				problems = append(problems, store.Detach(ctx, v, m))
			}
			return len(v.Machines) == 0, errors.Join(problems...)
		})
	}
	if b, ok := r.backend.(backends.SharedVolumer); ok {
		w.volumes(ctx, &t.shares, b.SharedVolumes(), "shared volume", nil)
	}
	w.machines(ctx, &t.machines)
	w.tidy(ctx)
	return w.left
}

// sweep is one cleaning up.
type sweep struct {
	*run
	left []Leftover
	// marks are those of what the case made.
	marks []backends.Marks
}

func (w *sweep) snapshots(ctx context.Context, t *track, store backends.Snapshots, noun string) {
	sweepKind(ctx, w, t, broom[backends.Snapshot]{shelf: snapshotShelf(w.subject, store, noun), delete: store.Delete})
}

func (w *sweep) volumes(ctx context.Context, t *track, store backends.VolumeStore, noun string,
	free func(context.Context, backends.Volume) (bool, error)) {
	sweepKind(ctx, w, t, broom[backends.Volume]{shelf: volumeShelf(w.subject, store, noun), delete: store.Delete, free: free})
}

func (w *sweep) machines(ctx context.Context, t *track) {
	b := broom[backends.Machine]{shelf: machineShelf(w.subject, w.backend), delete: w.backend.DeleteMachine}
	if p, ok := w.backend.(backends.Protector); ok {
		b.free = func(ctx context.Context, m backends.Machine) (bool, error) {
			if m.Protected {
				return true, p.Protect(ctx, m, false)
			}
			return true, nil
		}
	}
	sweepKind(ctx, w, t, b)
}

// broom removes objects of one kind.
type broom[T backends.Object] struct {
	*shelf[T]
	delete func(context.Context, T) error
	// free does away with what keeps an object from being deleted, and tells whether
	// nothing does any more; nil: nothing ever does.
	free func(context.Context, T) (bool, error)
}

func sweepKind[T backends.Object](ctx context.Context, w *sweep, t *track, b broom[T]) {
	marks, order := t.kept()
	w.marks = append(w.marks, marks...)
	if len(marks) == 0 && len(order) == 0 {
		return
	}
	known := map[string]bool{}
	for _, id := range order {
		known[id] = true
	}
	looked := map[string]bool{}
	for _, m := range marks {
		if looked[m.Key] {
			continue
		}
		looked[m.Key] = true
		objects, err := b.byKey(ctx, m.Key)
		if err != nil {
			w.left = append(w.left, Leftover{backends.About{Noun: b.noun, Marks: backends.Marks{Key: m.Key}}, err})
			continue
		}
		for _, o := range objects {
			a := o.About()
			if a.Marks.Key == m.Key && !known[a.ID] { // a backend that finds others must not get them deleted
				known[a.ID] = true
				order = append(order, a.ID)
			}
		}
	}
	for _, id := range order {
		last, err := b.remove(ctx, id)
		last.Noun, last.ID = b.noun, id
		w.marks = append(w.marks, last.Marks)
		if err != nil {
			w.left = append(w.left, Leftover{last, err})
		}
	}
}

// remove deletes an object and waits until it is gone. It returns the object as it
// was last seen.
func (b *broom[T]) remove(ctx context.Context, id string) (last backends.About, err error) {
	asked, refused := false, 0
	for n := 0; ; n++ {
		if n > 0 {
			if err := backends.Sleep(ctx, backends.Scale(cleanupPolls[min(n, len(cleanupPolls))-1])); err != nil {
				return last, errors.New("it was asked to be deleted, and didn't go in time")
			}
		}
		seen, err := b.byID(ctx, id)
		switch {
		case backends.HasCode(err, backends.NotFound), err == nil && seen.About().State == backends.StateDeleted:
			return last, nil
		case err != nil:
			return last, err
		}
		last = seen.About()
		if asked || last.Going() {
			continue
		}
		if b.free != nil {
			if ready, err := b.free(ctx, seen); err != nil || !ready {
				if err != nil {
					return last, err
				}
				continue
			}
		}
		err = b.delete(ctx, seen)
		if backends.HasCode(err, backends.InvalidState) && refused < maxRefused {
			refused++ // an action of the case's may still run, such as an attachment
			continue
		}
		if err != nil && !backends.HasCode(err, backends.NotFound) {
			return last, err
		}
		asked = true
	}
}

// tidy removes what the cloud keeps of the marks of what is gone. That it can't is
// not of a case's making, and costs nothing: see tidy/removes.
func (w *sweep) tidy(ctx context.Context) {
	tidier, ok := w.backend.(backends.Tidier)
	if !ok {
		return
	}
	done := map[backends.Marks]bool{}
	for _, m := range w.marks {
		fixed := m.Fixed
		m = backends.Marks{Key: m.Key, Pool: m.Pool, Digest: m.Digest, Claim: m.Claim, Volume: m.Volume}
		if fixed || m == (backends.Marks{}) || done[m] {
			continue
		}
		done[m] = true
		_ = tidier.Tidy(ctx, m)
	}
}

// tidyAccount is tidy for the account itself, at the end of a run.
func (r *run) tidyAccount(ctx context.Context) {
	if tidier, ok := r.backend.(backends.Tidier); ok {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.subject.CleanupTimeout)
		defer cancel()
		_ = tidier.Tidy(ctx, backends.Marks{Account: r.subject.Account.AccountID()})
	}
}
