// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// diskCloud is a cloud with block volumes, shared volumes and snapshots as well.
type diskCloud struct {
	*cloud
	disks, nfs *disks
	snaps      *snaps
}

// selectiveCloud can delete volumes together with a machine.
type selectiveCloud struct{ *diskCloud }

func (c *diskCloud) Volumes() backends.Volumes           { return c.disks }
func (c *diskCloud) SharedVolumes() backends.VolumeStore { return c.nfs }
func (c *diskCloud) Snapshots() backends.Snapshots       { return c.snaps }
func (c *diskCloud) DeleteMachine(ctx context.Context, m backends.Machine) error {
	c.disks.release(m.ID)
	return c.cloud.DeleteMachine(ctx, m)
}

func (c selectiveCloud) DeleteMachineWith(ctx context.Context, m backends.Machine, volumes []backends.Volume) error {
	for _, v := range volumes {
		c.disks.log("delete %s with %s", v.Name, m.ID)
		c.disks.drop(v.ID)
	}
	return c.diskCloud.DeleteMachine(ctx, m)
}

// disks is a cloud's volumes of one kind. What an action does shows after lag.
type disks struct {
	mu      sync.Mutex
	kind    backends.VolumeKind
	volumes map[string]backends.Volume
	calls   []string
	next    int
	lag     time.Duration
	listLag time.Duration
	lose    int   // answers of makes that get lost
	err     error // of every change, without effect
	listErr error
}

func newDiskCloud() *diskCloud {
	return &diskCloud{
		cloud: newCloud(), snaps: &snaps{snapshots: map[string]backends.Snapshot{}},
		disks: &disks{kind: backends.BlockVolume, volumes: map[string]backends.Volume{}, lag: 2 * time.Second},
		nfs:   &disks{kind: backends.SharedVolume, volumes: map[string]backends.Volume{}, lag: 2 * time.Second},
	}
}

func (d *disks) log(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

// fail lets every change fail, without effect.
func (d *disks) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *disks) failing() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *disks) called() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, ", ")
}

// later changes a volume after the lag.
func (d *disks) later(id string, change func(*backends.Volume)) {
	time.AfterFunc(d.lag, func() { d.change(id, change) })
}

func (d *disks) change(id string, change func(*backends.Volume)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.volumes[id]; ok {
		v.Machines = slices.Clone(v.Machines)
		change(&v)
		d.volumes[id] = v
	}
}

func (d *disks) drop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.volumes, id)
}

// release detaches everything from a machine.
func (d *disks) release(machine string) {
	for _, v := range d.all() {
		d.change(v.ID, func(v *backends.Volume) {
			v.Machines = slices.DeleteFunc(v.Machines, func(m string) bool { return m == machine })
		})
	}
}

func (d *disks) all() []backends.Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.volumes), older[backends.Volume])
}

// put places a volume that was there before.
func (d *disks) put(v backends.Volume) backends.Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	v.ID = fmt.Sprintf("v%d", d.next)
	v.Kind, v.State, v.Created = d.kind, backends.StateReady, time.Now().Add(-time.Hour)
	d.volumes[v.ID] = v
	return v
}

func (d *disks) Unfiltered() bool                                { return true }
func (d *disks) FixedMarks() bool                                { return d.kind == backends.SharedVolume }
func (d *disks) CheckForm(backends.VolumeSpec) []*backends.Error { return nil }
func (d *disks) Device(string) string                            { return "" }
func (d *disks) Check(context.Context, backends.VolumeSpec) ([]*backends.Error, error) {
	return nil, nil
}

func (d *disks) List(_ context.Context, f backends.Filter) (backends.Listing[backends.Volume], error) {
	if d.listErr != nil {
		return backends.Listing[backends.Volume]{}, d.listErr
	}
	return backends.Whole(slices.DeleteFunc(d.all(), func(v backends.Volume) bool {
		return !f.Holds(v.Marks) || time.Since(v.Created) < d.listLag
	})), nil
}

func (d *disks) Named(_ context.Context, name string) ([]backends.Volume, error) {
	return slices.DeleteFunc(d.all(), func(v backends.Volume) bool { return v.Name != name }), nil
}

func (d *disks) Get(_ context.Context, id string) (backends.Volume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.volumes[id]; ok {
		return v, nil
	}
	return backends.Volume{}, backends.Errorf(backends.NotFound, "The volume %s is gone.", id)
}

func (d *disks) Make(_ context.Context, spec backends.VolumeSpec) (backends.Volume, error) {
	d.log("make %s", spec.Name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	size := spec.SizeGiB
	if spec.Restores {
		size = 5 // of the snapshot
	}
	marks := spec.Marks
	if marks.Fixed = d.kind == backends.SharedVolume; marks.Fixed {
		marks.Account, marks.Pool = marks.Account[:16], marks.Pool[:15]
	}
	v := backends.Volume{
		ID: fmt.Sprintf("v%d", d.next), Name: spec.Name, Kind: d.kind, State: backends.StatePending, SizeGiB: size,
		Region: spec.Region, Created: time.Now(), Marks: marks,
	}
	d.volumes[v.ID] = v
	d.later(v.ID, func(v *backends.Volume) {
		v.State = backends.StateReady
		v.Marks.Complete = v.Marks.Complete || v.Marks.Fixed
	})
	if d.lose > 0 {
		d.lose--
		return backends.Volume{}, lost
	}
	return v, nil
}

func (d *disks) Mark(_ context.Context, v backends.Volume, marks backends.Marks) (backends.Volume, error) {
	d.log("mark %s complete=%t", v.Name, marks.Complete)
	if err := d.failing(); err != nil {
		return v, err
	}
	d.change(v.ID, func(v *backends.Volume) { v.Marks = marks })
	return d.Get(context.Background(), v.ID)
}

func (d *disks) Resize(_ context.Context, v backends.Volume, gib int64) error {
	d.log("resize %s to %d", v.Name, gib)
	if err := d.failing(); err != nil {
		return err
	}
	d.later(v.ID, func(v *backends.Volume) { v.SizeGiB = gib })
	return nil
}

func (d *disks) Attach(_ context.Context, v backends.Volume, machine string) error {
	d.log("attach %s to %s", v.Name, machine)
	if err := d.failing(); err != nil {
		return err
	}
	d.later(v.ID, func(v *backends.Volume) { v.Machines = append(v.Machines, machine) })
	return nil
}

func (d *disks) Detach(_ context.Context, v backends.Volume, machine string) error {
	d.log("detach %s from %s", v.Name, machine)
	if err := d.failing(); err != nil {
		return err
	}
	d.later(v.ID, func(v *backends.Volume) {
		v.Machines = slices.DeleteFunc(v.Machines, func(m string) bool { return m == machine })
	})
	return nil
}

func (d *disks) Delete(_ context.Context, v backends.Volume) error {
	d.log("delete %s", v.Name)
	if err := d.failing(); err != nil {
		return err
	}
	if now, err := d.Get(context.Background(), v.ID); err != nil || len(now.Machines) > 0 {
		return backends.Errorf(backends.ProviderError, "attached volume cannot be deleted")
	}
	d.drop(v.ID)
	return nil
}

// snaps are snapshots, ready at once.
type snaps struct {
	mu        sync.Mutex
	snapshots map[string]backends.Snapshot
	making    int // right now
}

func (s *snaps) put(snapshot backends.Snapshot) backends.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot.ID = fmt.Sprintf("s%d", len(s.snapshots)+1)
	snapshot.State, snapshot.Created, snapshot.Kind = backends.StateReady, time.Now(), backends.BlockVolume
	s.snapshots[snapshot.ID] = snapshot
	return snapshot
}

func (s *snaps) Unfiltered() bool                                  { return false }
func (s *snaps) FixedMarks() bool                                  { return false }
func (s *snaps) CheckForm(backends.SnapshotSpec) []*backends.Error { return nil }

func (s *snaps) List(_ context.Context, f backends.Filter) (backends.Listing[backends.Snapshot], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return backends.Whole(slices.DeleteFunc(slices.Collect(maps.Values(s.snapshots)), func(o backends.Snapshot) bool { return !f.Holds(o.Marks) })), nil
}

func (s *snaps) OfVolume(_ context.Context, volume string) ([]backends.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(s.snapshots)), func(o backends.Snapshot) bool { return o.Volume != volume }), nil
}

func (s *snaps) Get(_ context.Context, id string) (backends.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.snapshots[id]; ok {
		return o, nil
	}
	return backends.Snapshot{}, backends.Errorf(backends.NotFound, "The snapshot %s is gone.", id)
}

func (s *snaps) Make(ctx context.Context, spec backends.SnapshotSpec) (backends.Snapshot, error) {
	s.mu.Lock()
	s.making++
	busy := s.making > 1
	s.mu.Unlock()
	_ = backends.Sleep(ctx, time.Second)
	s.mu.Lock()
	s.making--
	s.mu.Unlock()
	if busy {
		return backends.Snapshot{}, backends.Errorf(backends.ProviderError, "two snapshots of one volume at once")
	}
	return s.put(backends.Snapshot{Name: spec.Name, Volume: spec.Volume, Marks: spec.Marks}), nil
}

func (s *snaps) Mark(ctx context.Context, o backends.Snapshot, marks backends.Marks) (backends.Snapshot, error) {
	s.mu.Lock()
	o = s.snapshots[o.ID]
	o.Marks = marks
	s.snapshots[o.ID] = o
	s.mu.Unlock()
	return s.Get(ctx, o.ID)
}

func (s *snaps) Delete(_ context.Context, o backends.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.snapshots, o.ID)
	return nil
}

// openDisks opens a cloud as one state's process sees it.
func openDisks(t *testing.T, b backends.Backend) (*Account, reference.Reference) {
	t.Helper()
	definition := newCloud().definition()
	definition.Create = func(backends.Values, backends.Environment) (backends.Backend, error) { return b, nil }
	registry, err := backends.NewRegistry(definition)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := reference.Parse(registry, "test-cloud://root/main/web")
	if err != nil {
		t.Fatal(err)
	}
	account, err := NewAccounts(registry, backends.Environment{}).Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	return account, pool
}

// volumeWish is a volume that a state wants, with a claim of its own.
func volumeWish(pool reference.Reference, kind backends.VolumeKind, name string, machines ...string) VolumeWish {
	key := reference.VolumeID(pool.PoolRef().ID(), name)
	spec := backends.VolumeSpec{Name: name, Kind: kind, Region: "here", SizeGiB: 10}
	spec.Marks = backends.Marks{
		Managed: true, Key: key, Account: pool.AccountRef().ID(), Pool: pool.PoolRef().ID(), Claim: NewClaim(),
		Digest: backends.Digest(key, map[backends.DigestField]string{backends.DigestKind: string(kind), backends.DigestRegion: "here"}),
	}
	return VolumeWish{Pool: pool, Spec: spec, Machines: machines}
}

// ownedVolume is what a state knows of a wish's volume.
func ownedVolume(w VolumeWish, v backends.Volume) VolumeOwned {
	return VolumeOwned{Owned: Owned{Pool: w.Spec.Marks.Pool, ID: v.ID, Key: w.Spec.Marks.Key, Claim: v.Marks.Claim}, Kind: v.Kind}
}
