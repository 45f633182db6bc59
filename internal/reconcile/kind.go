// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// kind is one kind of object of an account, with all that the rules need to do to
// it. What is special about machines, volumes and snapshots is in the files named
// after them.
type kind[T backends.Object] struct {
	account *Account
	noun    string // as in backends.About
	reader  *reader[T]
	get     func(ctx context.Context, id string) (T, error)
	mark    func(ctx context.Context, object T, marks backends.Marks) (T, error)
	delete  func(ctx context.Context, object T) error
	// onePerKey: the cloud itself lets only one object with a key exist.
	onePerKey bool
	// reusedIDs: an id may be another object's by now.
	reusedIDs bool
	// fixed: marks are in the objects' names.
	fixed bool
	// polled: many objects are waited for at the same time, so that a look at one costs
	// nothing beside their polls. Without it a get is cheaper than a list.
	polled bool
	// optional: a product of its own that credentials often don't reach, so that not
	// being allowed to list it counts as having none.
	optional bool
	// shortest is how long making an object has taken at least, in nanoseconds; 0 before
	// the first.
	shortest atomic.Int64
	// diagnose is the cloud's explanation of an object that doesn't get where it
	// should; nil where it has none.
	diagnose func(ctx context.Context, object T) error
}

// lock serialises what changes one object.
func (k *kind[T]) lock(ctx context.Context, id string) (unlock func(), err error) {
	return k.account.shared.objects.lock(ctx, k.account.Definition.ID+"/"+k.noun+"/"+id)
}

// isStrangers tells whether an object only has the id that one of ours had: where ids
// are reused, what carries another key is another's, and ours is gone; and so is what
// carries no marks of ours, unless it still has our name: then somebody took the marks
// away, and a second one must not be made.
func (k *kind[T]) isStrangers(a backends.About, o Owned) bool {
	if !k.reusedIDs || o.Claim == "" {
		return false
	}
	switch Own(a.Marks, o.Key, o.Claim) {
	case Foreign:
		return true
	case Unmarked:
		return o.Name == "" || a.Name != o.Name
	default:
		return false
	}
}

// ask is the object itself, as the cloud shows it now; NOT_FOUND when it is gone.
func (k *kind[T]) ask(ctx context.Context, id string) (T, error) {
	object, err := k.get(ctx, id)
	if err == nil {
		k.reader.wrote(object)
		k.reader.seen(id)
	}
	return object, err
}

// change calls the cloud to change an object, and lets the call end when ctx does. Of
// one that we have just made, "not found" may mean that the cloud doesn't know it
// everywhere yet: then it is called again, until lists must show it.
func (k *kind[T]) change(ctx context.Context, id string, call func(ctx context.Context) error) error {
	for n := 0; ; n++ {
		grace, cancel := backends.Grace(ctx)
		err := call(grace)
		cancel()
		if !backends.HasCode(err, backends.NotFound) || !k.reader.fresh(id) {
			return err
		}
		if ended := backends.Sleep(ctx, poll(n)); ended != nil {
			return ended
		}
	}
}

// why is the cloud's own explanation where it has one, else otherwise. That it
// can't be asked is no failure of the object.
func (k *kind[T]) why(ctx context.Context, object T, otherwise error) error {
	if k.diagnose == nil {
		return otherwise
	}
	if err := k.diagnose(ctx, object); err != nil && backends.HasReason(err, backends.ReasonAction) {
		return err
	}
	return otherwise
}

// objects are the managed objects that a filter holds, as a list that begins now
// shows them, the oldest first; those being deleted are left out.
func (k *kind[T]) objects(ctx context.Context, filter backends.Filter) ([]T, error) {
	if k == nil || k.reader.lists == nil {
		return nil, nil
	}
	found, err := k.reader.list(ctx, filter, time.Now(), func(o T) bool { return !o.About().Going() })
	if k.optional && backends.HasReason(err, backends.ReasonPermission) {
		return nil, nil
	}
	return found, err
}

// recent is the object of a pool that carries a key, as a recent list shows it; nil
// when there is none.
func (k *kind[T]) recent(ctx context.Context, pool, key string) (*T, error) {
	found, err := k.reader.byKey(ctx, backends.Filter{Pool: pool}, key, k.lookUpSince())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// lookUpSince is when a list may have begun that is to tell whether a key is taken.
// Where the cloud itself refuses a second object of a key, an older one will do.
func (k *kind[T]) lookUpSince() time.Time {
	if k.onePerKey {
		return time.Now().Add(-refreshAge)
	}
	return time.Now().Add(-lookUpAge)
}

// refresh is an object of a pool as a recent list shows it; NOT_FOUND when it is
// gone.
func (k *kind[T]) refresh(ctx context.Context, pool, id string) (T, error) {
	o, _, err := k.reader.read(ctx, backends.Filter{Pool: pool}, id, time.Now().Add(-refreshAge))
	if err == nil && o.About().State == backends.StateDeleted {
		return o, k.reader.gone(id)
	}
	return o, err
}

// current is an object of a pool as it is now, for one who acts on it; NOT_FOUND when
// it is gone.
func (k *kind[T]) current(ctx context.Context, pool, id string) (T, error) {
	filter := backends.Filter{Pool: pool}
	defer k.reader.watching(filter)()
	o, _, err := k.reader.watch(ctx, filter, id, time.Now())
	return o, err
}

// machineKind, volumeKind and snapshotKind say how the rules reach a backend's
// objects.
func machineKind(a *Account, lag lags) *kind[backends.Machine] {
	k := &kind[backends.Machine]{
		account: a, noun: "machine",
		get: a.Backend.GetMachine, mark: a.Backend.MarkMachine, delete: a.Backend.DeleteMachine,
	}
	_, k.onePerKey = a.Backend.(backends.OnePerKey)
	_, k.reusedIDs = a.Backend.(backends.ReusedIDs)
	k.polled = true
	if d, ok := a.Backend.(backends.Diagnoser); ok {
		k.diagnose = d.Diagnose
	}
	k.reader = &reader[backends.Machine]{get: a.Backend.GetMachine, find: a.Backend.FindMachines, noun: k.noun, lags: lag}
	if l, ok := a.Backend.(backends.Lister); ok {
		k.reader.lists = l.ListMachines
	}
	_, k.reader.phased = a.Backend.(backends.PhaseLister)
	return k
}

func volumeKind(a *Account, store backends.VolumeStore, lag lags) *kind[backends.Volume] {
	k := &kind[backends.Volume]{account: a, noun: "volume", get: store.Get, mark: store.Mark, delete: store.Delete}
	_, k.onePerKey = store.(backends.OnePerKey)
	k.fixed = store.FixedMarks()
	if d, ok := store.(backends.VolumeDiagnoser); ok {
		k.diagnose = d.Diagnose
	}
	k.reader = &reader[backends.Volume]{get: store.Get, lists: store.List, unfiltered: store.Unfiltered(), noun: k.noun, lags: lag}
	return k
}

func snapshotKind(a *Account, store backends.Snapshots, lag lags) *kind[backends.Snapshot] {
	k := &kind[backends.Snapshot]{account: a, noun: "snapshot", get: store.Get, mark: store.Mark, delete: store.Delete}
	_, k.onePerKey = store.(backends.OnePerKey)
	k.fixed = store.FixedMarks()
	k.reader = &reader[backends.Snapshot]{get: store.Get, lists: store.List, unfiltered: store.Unfiltered(), noun: k.noun, lags: lag}
	return k
}
