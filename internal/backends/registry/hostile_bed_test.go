// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package registry_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/backends/registry"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/hetzner"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// credential is the token of all accounts here: no message, warning or log may hold it.
const credential = "bc@pve!tofu=hunter2-hunter2"

// cloud is a registered cloud with its emulator, and what can be made in it.
type cloud struct {
	id      string
	account backends.Values
	emulate func() (http.Handler, error)
	machine backends.MachineSpec
	volume  backends.VolumeSpec
	share   backends.VolumeSpec
}

func clouds() []cloud {
	return []cloud{
		{
			id: "digitalocean", account: backends.Values{"region": "nyc2"},
			emulate: func() (http.Handler, error) {
				return digitalocean.New(digitalocean.Options{SnapshotInterval: -1}), nil
			},
			machine: backends.MachineSpec{Offer: "s-1vcpu-1gb", Image: "ubuntu-24-04-x64", Region: "nyc2"},
			volume:  backends.VolumeSpec{Region: "nyc2", SizeGiB: 10},
			share:   backends.VolumeSpec{Region: "nyc2", SizeGiB: 50},
		},
		{
			id:      "hetzner-cloud",
			emulate: func() (http.Handler, error) { return hetzner.New(hetzner.Options{}), nil },
			machine: backends.MachineSpec{Offer: "cx23", Image: "ubuntu-24.04", Region: "fsn1"},
			volume:  backends.VolumeSpec{Region: "fsn1", SizeGiB: 10},
		},
		{
			id: "proxmox", account: backends.Values{"url": "https://pve.test:8006"},
			emulate: func() (http.Handler, error) { return proxmox.New(proxmox.Options{PlainHTTP: true}) },
			machine: backends.MachineSpec{Offer: "2c-4g", Image: "debian-13", Region: "pve"},
		},
	}
}

// bed is a backend on an emulated cloud that holds one of each kind of object.
type bed struct {
	backend backends.Backend
	wire    *wire
	log     *log
	api     http.Handler

	machine   backends.Machine
	spec      backends.MachineSpec
	volumes   map[string]backends.Volume // by the store's name
	wishes    map[string]backends.VolumeSpec
	snapshots map[string]backends.Snapshot
	warnings  *[]string
}

// marksOf are marks with a key of a kind.
func marksOf(key string) backends.Marks {
	return backends.Marks{
		Managed: true, Key: key + "_0123456789abcdefghjkmnpqrs", Account: "pacct_0123456789abcdefghjkmnpqrs",
		Pool: "pool_0123456789abcdefghjkmnpqrs", Digest: "iabcdef-o123456-r99zzzz", Claim: "c0ffeec0ffee",
	}
}

// build is a backend on a cloud that holds nothing yet. It also returns the context of
// its calls.
func (c cloud) build(t *testing.T) (context.Context, *bed) {
	t.Helper()
	known, err := registry.New()
	if err != nil {
		t.Fatal(err)
	}
	definition, ok := known.Lookup(c.id)
	if !ok {
		t.Fatalf("there is no cloud %q", c.id)
	}
	api, err := c.emulate()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{
		wire: &wire{base: emulator.Transport(api)}, log: &log{}, api: api, warnings: new([]string),
		volumes: map[string]backends.Volume{}, wishes: map[string]backends.VolumeSpec{}, snapshots: map[string]backends.Snapshot{},
	}
	config := backends.Values{"token": "env://TOKEN"}
	maps.Copy(config, c.account)
	b.backend, err = definition.Create(backends.WithDefaults(definition.Manifest.Account, config), backends.Environment{
		Secrets: secrets{}, Transport: b.wire, UserAgent: "bettercompute-test/1.0.0",
		Log: slog.New(b.log), Limits: backends.NewLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ctx := backends.WithWarnings(t.Context(), func(text string) {
		mu.Lock()
		defer mu.Unlock()
		*b.warnings = append(*b.warnings, text)
	})
	b.spec = c.machine
	b.spec.Name, b.spec.Start, b.spec.Marks = "web-0", true, marksOf("inst")
	return ctx, b
}

// fill makes one of each kind of object.
func (c cloud) fill(ctx context.Context, t *testing.T, b *bed) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	b.machine, err = b.backend.MakeMachine(ctx, b.spec)
	must(err)
	if finisher, ok := b.backend.(backends.Finisher); ok {
		b.machine, err = finisher.FinishMachine(ctx, b.machine, b.spec)
		must(err)
	}
	marks := b.machine.Marks
	marks.Complete = true
	b.machine, err = b.backend.MarkMachine(ctx, b.machine, marks)
	must(err)
	for name, store := range b.stores() {
		var snapshots string
		wish := c.volume
		wish.Kind, wish.Name, wish.Marks = backends.BlockVolume, "data", marksOf("pvol")
		switch name {
		case "Volumes":
			snapshots = "Snapshots"
		case "SharedVolumes":
			snapshots = "SharedSnapshots"
			wish = c.share
			wish.Kind, wish.Name, wish.Marks = backends.SharedVolume, "files", marksOf("pvol")
			wish.Network = b.network(t)
		default:
			continue
		}
		volumes := store.(backends.VolumeStore)
		if volumes.FixedMarks() {
			wish.Marks.Claim = strings.Repeat("c", backends.FixedClaimLength)
		}
		v, err := volumes.Make(ctx, wish)
		must(err)
		v, err = volumes.Get(ctx, v.ID)
		must(err)
		b.volumes[name], b.wishes[name] = v, wish
		if taker, ok := b.stores()[snapshots].(backends.Snapshots); ok {
			s, err := taker.Make(ctx, b.snapshotSpec(name))
			must(err)
			b.snapshots[snapshots] = s
		}
	}
}

func (b *bed) snapshotSpec(volumes string) backends.SnapshotSpec {
	marks := marksOf("psnap")
	marks.Volume = b.wishes[volumes].Name
	if strings.HasPrefix(volumes, "Shared") {
		marks.Claim = strings.Repeat("c", backends.FixedClaimLength)
	}
	return backends.SnapshotSpec{Name: "first", Volume: b.volumes[volumes].ID, Region: b.volumes[volumes].Region, Marks: marks}
}

// network is the id of a private network for a share.
func (b *bed) network(t *testing.T) string {
	t.Helper()
	made := b.post(t, "/v2/vpcs", `{"name":"net","region":"nyc2"}`)
	vpc, _ := made["vpc"].(map[string]any)
	id, _ := vpc["id"].(string)
	if id == "" {
		t.Fatalf("no network: %v", made)
	}
	return id
}

// stores are what the backend hands out by methods without parameters, by the method's
// name: the contract's volumes and snapshots.
func (b *bed) stores() map[string]any {
	out := map[string]any{}
	backend := reflect.ValueOf(b.backend)
	for i := range backend.NumMethod() {
		method := backend.Method(i)
		kind := method.Type()
		if kind.NumIn() == 0 && kind.NumOut() == 1 && kind.Out(0).Kind() == reflect.Interface {
			out[backend.Type().Method(i).Name] = method.Call(nil)[0].Interface()
		}
	}
	return out
}

// act is a call of the contract.
type act struct {
	name string // Volumes.Attach
	do   func(ctx context.Context, b *bed) error
}

var contextType = reflect.TypeFor[context.Context]()

// acts are all calls of the contract that can reach the cloud: the methods, of the
// backend and of its stores, that take a context. What they are given is made from the
// bed's objects by type.
func (b *bed) acts(t *testing.T) []act {
	t.Helper()
	var out []act
	add := func(store string, of any) {
		kind := reflect.TypeOf(of)
		for method := range kind.Methods() {
			if method.Type.NumIn() < 2 || method.Type.In(1) != contextType {
				continue
			}
			if own, ok := reflect.TypeOf(b.backend).MethodByName(method.Name); ok && store != "" && slices.Equal(parameters(own), parameters(method)) {
				continue // a store that is the backend in another guise
			}
			name := strings.TrimPrefix(store+"."+method.Name, ".")
			out = append(out, act{name, func(ctx context.Context, b *bed) error {
				target := any(b.backend)
				if store != "" {
					target = b.stores()[store]
				}
				in := []reflect.Value{reflect.ValueOf(ctx)}
				for p := 2; p < method.Type.NumIn(); p++ {
					in = append(in, b.argument(store, method.Name, p, method.Type.In(p)))
				}
				return outcome(ctx, reflect.ValueOf(target).MethodByName(method.Name).Call(in))
			}})
		}
	}
	add("", b.backend)
	stores := b.stores()
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		add(name, stores[name])
	}
	return out
}

func parameters(m reflect.Method) (out []reflect.Type) {
	for p := 1; p < m.Type.NumIn(); p++ {
		out = append(out, m.Type.In(p))
	}
	return out
}

// argument is what a parameter is given. A type that isn't known here fails the test:
// the contract has grown.
func (b *bed) argument(store, method string, p int, kind reflect.Type) reflect.Value {
	volumes := store
	if of, ok := strings.CutSuffix(store, "Snapshots"); ok {
		volumes = of + "Volumes"
	}
	values := []any{
		b.spec, b.machine, b.wishes[volumes], b.volumes[volumes], b.snapshots[store], b.snapshotSpec(volumes),
		backends.Filter{Account: b.spec.Marks.Account, Pool: b.spec.Marks.Pool}, backends.OfferQuery{}, backends.PowerOff,
		[]backends.Volume{b.volumes["Volumes"]}, true, int64(100),
	}
	switch {
	case kind == reflect.TypeFor[backends.Marks]():
		marks := b.machine.Marks
		switch {
		case b.snapshots[store].ID != "":
			marks = b.snapshots[store].Marks
		case b.volumes[store].ID != "":
			marks = b.volumes[store].Marks
		}
		marks.Claim, marks.Complete = "another-claim", true
		return reflect.ValueOf(marks)
	case kind.Kind() == reflect.Func: // it does nothing, and nothing fails
		return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, kind.NumOut())
			for i := range out {
				out[i] = reflect.Zero(kind.Out(i))
			}
			return out
		})
	case kind.Kind() == reflect.String && kind.Name() == "string":
		return reflect.ValueOf(b.text(store, method, p, volumes))
	}
	for _, v := range values {
		if reflect.TypeOf(v) == kind {
			return reflect.ValueOf(v)
		}
	}
	return reflect.Value{} // Call refuses it
}

// text is what a string parameter is given: mostly an id.
func (b *bed) text(store, method string, p int, volumes string) string {
	switch {
	case method == "FindMachines" || method == "SweepMachine":
		return b.spec.Marks.Key
	case method == "Named":
		return b.wishes[store].Name
	case p > 2, store == "":
		return b.machine.ID
	case method == "OfVolume" || b.snapshots[store].ID == "":
		return b.volumes[volumes].ID
	default:
		return b.snapshots[store].ID
	}
}

// outcome is a call's error. Of a list all pages are read.
func outcome(ctx context.Context, out []reflect.Value) error {
	for _, v := range out {
		switch x := v.Interface().(type) {
		case error:
			return x
		case backends.Listing[backends.Machine]:
			_, err := x.All(ctx)
			return err
		case backends.Listing[backends.Volume]:
			_, err := x.All(ctx)
			return err
		case backends.Listing[backends.Snapshot]:
			_, err := x.All(ctx)
			return err
		}
	}
	return nil
}

type secrets struct{}

func (secrets) Resolve(context.Context, string) (string, error) { return credential, nil }
func (secrets) Forget(string)                                   {}

// log keeps what is logged.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Enabled(context.Context, slog.Level) bool { return true }

func (l *log) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		l.lines = append(l.lines, a.Key+"="+a.Value.String())
		return true
	})
	return nil
}

func (l *log) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *log) WithGroup(string) slog.Handler      { return l }

// operationTime is what an operation gets here.
const operationTime = 20 * time.Minute
