// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// switched is what the rules above a backend do around an edit: off switches the VM off,
// and after the edit it is on again.
type switched struct {
	*Client
	m   backends.Machine
	off bool
	// offAs switches it off instead of powerOff; nil: as that does.
	offAs backends.PowerDown
}

func (s *switched) powerOff(ctx context.Context) error {
	s.off = true
	return s.Power(ctx, s.m, backends.PowerOff)
}

// around makes a change and switches the VM on again.
func (s *switched) around(ctx context.Context, do func(backends.PowerDown) (backends.Machine, error)) (backends.Machine, error) {
	s.off = false
	off := s.offAs
	if off == nil {
		off = s.powerOff
	}
	m, err := do(off)
	if s.off {
		// Its key may be the new one by now.
		now, readErr := s.GetMachine(ctx, m.ID)
		err = errors.Join(err, readErr, s.Power(ctx, now, backends.PowerOn))
	}
	return m, err
}

func (s *switched) edit(ctx context.Context, from, to backends.MachineSpec) (backends.Machine, error) {
	return s.around(ctx, func(off backends.PowerDown) (backends.Machine, error) { return s.Edit(ctx, s.m, from, to, off) })
}

// completed is a wish whose marks are those of a complete machine.
func completed(spec backends.MachineSpec) backends.MachineSpec {
	spec.Marks.Complete = true
	return spec
}

// renamed is a wish of another name, and so of another key.
func renamed(spec backends.MachineSpec, name string) backends.MachineSpec {
	spec.Name, spec.Marks.Key, spec.Marks.Digest = name, "inst_"+strings.Repeat(name[len(name)-1:], 26), "iother"
	return spec
}

func with(spec backends.MachineSpec, options backends.Values) backends.MachineSpec {
	spec.Options = spec.Options.Clone()
	if spec.Options == nil {
		spec.Options = backends.Values{}
	}
	maps.Copy(spec.Options, options)
	return spec
}

func cardsOf(devices ...backends.Values) backends.Values {
	list := []any{}
	for _, d := range devices {
		list = append(list, d)
	}
	return backends.Values{"network_devices": list}
}

// TestPlanEdit: what each input takes.
func TestPlanEdit(t *testing.T) {
	c, _ := emulate(t, emulated.Options{})
	base := testSpec()
	base.Labels = map[string]string{"role": "web"}
	base.Network = "vmbr0"
	base.Options = backends.Values{
		"node": "pve1", "cpu_type": "host", "on_boot": true, "tags": []any{"a", "b"}, "pool_id": "one",
		"ip_config":       []any{backends.Values{"ipv4": "10.0.0.5/24"}},
		"dns":             backends.Values{"servers": []any{"10.0.0.1"}},
		"network_devices": []any{backends.Values{"model": "virtio", "bridge": "vmbr0", "vlan_id": int64(5)}},
	}
	device := func(change backends.Values) backends.Values {
		out := base.Options.List("network_devices")[0].(backends.Values).Clone()
		maps.Copy(out, change)
		return out
	}
	const inPlace, restart, next, replace = backends.InPlace, backends.Restart, backends.NextCreation, backends.Replace
	for name, test := range map[string]struct {
		to        backends.MachineSpec
		path      string
		takes     backends.Takes
		addresses bool
	}{
		"nothing":        {base, "", 0, false},
		"tags' order":    {with(base, backends.Values{"tags": []any{"b", "a"}}), "", 0, false},
		"hands off":      {backends.MachineSpec{Name: base.Name, Marks: base.Marks}, "", 0, false},
		"name":           {renamed(base, "web-1"), "name", inPlace, false},
		"tags":           {with(base, backends.Values{"tags": []any{"b"}}), "proxmox.tags", inPlace, false},
		"on_boot":        {with(base, backends.Values{"on_boot": false}), "proxmox.on_boot", inPlace, false},
		"pool":           {with(base, backends.Values{"pool_id": "two"}), "proxmox.pool_id", inPlace, false},
		"CPU":            {with(base, backends.Values{"cpu_type": "kvm64"}), "proxmox.cpu_type", restart, false},
		"address":        {with(base, backends.Values{"ip_config": []any{backends.Values{"ipv4": "10.0.0.6/24"}}}), "proxmox.ip_config", restart, true},
		"DNS":            {with(base, backends.Values{"dns": backends.Values{"domain": "example.com"}}), "proxmox.dns", restart, false},
		"VLAN":           {with(base, cardsOf(device(backends.Values{"vlan_id": int64(6)}))), "proxmox.network_devices", inPlace, true},
		"bridge":         {with(base, cardsOf(device(backends.Values{"bridge": "vmbr1", "firewall": true}))), "proxmox.network_devices", inPlace, true},
		"MAC":            {with(base, cardsOf(device(backends.Values{"mac_address": "bc:24:11:00:00:07"}))), "proxmox.network_devices", restart, true},
		"one more card":  {with(base, cardsOf(device(nil), device(nil))), "proxmox.network_devices", restart, true},
		"no card":        {with(base, cardsOf()), "proxmox.network_devices", restart, true},
		"unknown card":   {with(base, backends.Values{"network_devices": backends.Unknown}), "proxmox.network_devices", restart, true},
		"unknown VLAN":   {with(base, cardsOf(device(backends.Values{"vlan_id": backends.Unknown}))), "proxmox.network_devices", inPlace, true},
		"node":           {with(base, backends.Values{"node": "pve2"}), "proxmox.node", next, false},
		"a VMID":         {with(base, backends.Values{"vm_id": int64(200)}), "proxmox.vm_id", next, false},
		"another bridge": {func() backends.MachineSpec { s := base; s.Network = "vmbr1"; return s }(), "network_id", inPlace, true},
		"labels":         {func() backends.MachineSpec { s := base; s.Labels = map[string]string{}; return s }(), "labels", inPlace, false},
	} {
		got := c.PlanEdit(base, test.to)
		switch {
		case test.path == "" && len(got) == 0:
		case len(got) != 1, got[0].Path.String() != test.path, got[0].Takes != test.takes, got[0].Addresses != test.addresses:
			t.Errorf("%s: %+v", name, got)
		case (test.takes == next || test.path == "name") != (got[0].Note != "") && test.path != "proxmox.ip_config" && test.path != "proxmox.dns":
			t.Errorf("%s: the note is %q", name, got[0].Note)
		}
	}
	from := with(base, backends.Values{"vm_id": int64(200)})
	if got := c.PlanEdit(from, with(base, backends.Values{"vm_id": int64(201)})); len(got) != 1 || got[0].Takes != replace {
		t.Errorf("another VMID: %+v", got)
	}
}

// TestEditOptions brings a running VM from one wish to another: what it has then, whether
// it was switched off for it, and that nothing waits for a start.
func TestEditOptions(t *testing.T) {
	first := backends.Values{"model": "virtio", "vlan_id": int64(5)}
	for name, test := range map[string]struct {
		from, to backends.Values
		network  string
		want     map[string]string // "…" stands for the MAC address that it had
		off      bool
	}{
		"on_boot": {nil, backends.Values{"on_boot": true}, "", map[string]string{"onboot": "1"}, false},
		"CPU":     {nil, backends.Values{"cpu_type": "host"}, "", map[string]string{"cpu": "host"}, true},
		"hands off": {
			backends.Values{"on_boot": true, "cpu_type": "host", "tags": []any{"a"}, "dns": backends.Values{"domain": "example.com"}}, nil, "",
			map[string]string{"onboot": "1", "cpu": "host", "searchdomain": "example.com"}, false,
		},
		"address": {
			static(5), static(6), "",
			map[string]string{"ipconfig0": "ip=10.1.0.7/24,gw=10.1.0.254"}, true,
		},
		"fewer addresses": {
			backends.Values{"ip_config": []any{backends.Values{"ipv4": "dhcp"}, backends.Values{"ipv4": "10.0.0.5/24"}}},
			backends.Values{"ip_config": []any{}},
			"", map[string]string{"ipconfig0": "ip=dhcp", "ipconfig1": ""}, true,
		},
		"DNS": {
			backends.Values{"dns": backends.Values{"servers": []any{"10.0.0.1"}, "domain": "example.com"}},
			backends.Values{"dns": backends.Values{"servers": []any{"10.0.0.2", "10.0.0.3"}}},
			"", map[string]string{"nameserver": "10.0.0.2 10.0.0.3", "searchdomain": ""}, true,
		},
		"no servers": {
			backends.Values{"dns": backends.Values{"servers": []any{"10.0.0.1"}}}, backends.Values{"dns": backends.Values{"servers": []any{}}},
			"", map[string]string{"nameserver": ""}, true,
		},
		"VLAN":    {cardsOf(first), cardsOf(backends.Values{"model": "virtio", "vlan_id": int64(6)}), "", map[string]string{"net0": "…,bridge=vmbr0,tag=6"}, false},
		"no VLAN": {cardsOf(first), cardsOf(backends.Values{"model": "virtio"}), "", map[string]string{"net0": "…,bridge=vmbr0"}, false},
		"bridge":  {nil, nil, "vmbr1", map[string]string{"net0": "…,bridge=vmbr1"}, false},
		"model":   {cardsOf(first), cardsOf(backends.Values{"model": "virtio", "vlan_id": int64(5), "mtu": int64(1400)}), "", map[string]string{"net0": "…,bridge=vmbr0,mtu=1400,tag=5"}, true},
		"MAC": {
			cardsOf(first), cardsOf(backends.Values{"model": "virtio", "mac_address": "bc:24:11:aa:00:07", "vlan_id": int64(5)}),
			"", map[string]string{"net0": "virtio=BC:24:11:AA:00:07,bridge=vmbr0,tag=5"}, true,
		},
		"a card less": {cardsOf(first, first), cardsOf(first), "", map[string]string{"net0": "…,bridge=vmbr0,tag=5", "net1": ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := slow()
				options.Bridges = []string{"vmbr0", "vmbr1"}
				c, cluster := emulate(t, options)
				from := with(testSpec(), test.from)
				s := &switched{Client: c, m: mustCreate(t, c, from)}
				before := emulatedVM(t, cluster, s.m.ID)
				mac, _, _ := strings.Cut(before.Config["net0"], ",")
				to := completed(with(testSpec(), test.to))
				to.Network = test.network
				for range 2 { // the second time there is nothing to do
					cluster.ClearCalls()
					m, err := s.edit(t.Context(), from, to)
					if err != nil {
						t.Fatal(err)
					}
					after := emulatedVM(t, cluster, s.m.ID)
					for option, want := range test.want {
						if want = strings.ReplaceAll(want, "…", mac); after.Config[option] != want {
							t.Errorf("%s is %q, want %q", option, after.Config[option], want)
						}
					}
					if len(after.Pending) > 0 || !after.Running || s.off != test.off || m.Marks != to.Marks {
						t.Errorf("pending %v, running %v, switched off %v, %+v", after.Pending, after.Running, s.off, m)
					}
					for _, option := range []string{"scsi0", "ide2", "smbios1", "description", "tags"} {
						if after.Config[option] != before.Config[option] {
							t.Errorf("%s is %q, was %q", option, after.Config[option], before.Config[option])
						}
					}
					test.off = false
				}
				if made := slices.DeleteFunc(calls(cluster), func(call string) bool { return strings.HasPrefix(call, "GET") }); len(made) > 0 {
					t.Errorf("the second time: %v", made)
				}
			})
		})
	}
}

// TestEditTags: labels and tags that are no longer wished go, also where an edit to other
// ones was cut off or someone changed a value; what others put there stays.
func TestEditTags(t *testing.T) {
	tags := func(texts ...string) backends.Values { return backends.Values{"tags": listOf(texts)} }
	for name, test := range map[string]struct {
		has              string // besides the template's
		fromL, toL       map[string]string
		fromTags, toTags backends.Values
		want             string
	}{
		"add":              {"", nil, map[string]string{"role": "web", "blue": ""}, nil, tags("x"), "blue role.web x"},
		"hands off":        {"role.web x", map[string]string{"role": "web"}, nil, tags("x"), nil, "role.web x"},
		"none":             {"role.web x", map[string]string{"role": "web"}, map[string]string{}, tags("x"), tags(), ""},
		"another value":    {"role.web", map[string]string{"role": "web"}, map[string]string{"role": "db"}, nil, nil, "role.db"},
		"cut off":          {"role.db", map[string]string{"role": "web"}, map[string]string{"role": "api"}, nil, nil, "role.api"},
		"cut off, back":    {"role.db", map[string]string{"role": "web"}, map[string]string{"role": "web"}, nil, nil, "role.web"},
		"changed by hand":  {"role.cache", map[string]string{"role": "web"}, map[string]string{}, nil, nil, ""},
		"another's label":  {"role.web env.prod", map[string]string{"role": "web"}, map[string]string{"role": "db"}, nil, nil, "env.prod role.db"},
		"near to ours":     {"role.web role.of role-x", map[string]string{"role": "web"}, map[string]string{"role": "web", "a": "b"}, nil, nil, "a.b role-x role.of role.web"},
		"another's tag":    {"x y", nil, nil, tags("x"), tags("z"), "y z"},
		"a label as a tag": {"role.web", map[string]string{"role": "web"}, map[string]string{}, nil, tags("role.web"), "role.web"},
		"left as a tag":    {"role.web", map[string]string{"role": "web"}, map[string]string{}, tags("role.web"), nil, "role.web"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{})
				from, to := testSpec(), completed(testSpec())
				from.Labels, from.Options, to.Labels, to.Options = test.fromL, test.fromTags, test.toL, test.toTags
				s := &switched{Client: c, m: mustCreate(t, c, testSpec())}
				ours := slices.DeleteFunc(emulatedVM(t, cluster, s.m.ID).Tags, func(tag string) bool { return !isOurs(tag) })
				cluster.SetOption(atoi(t, s.m.ID), "tags", strings.Join(append(ours, strings.Fields("debian "+test.has)...), ";"))
				m, err := s.edit(t.Context(), from, to)
				if err != nil {
					t.Fatal(err)
				}
				got := foreignTags(emulatedVM(t, cluster, s.m.ID).Tags)
				want := append(strings.Fields(test.want), "debian")
				slices.Sort(want)
				if !slices.Equal(got, want) || s.off {
					t.Errorf("%q, want %q", got, want)
				}
				if shown, err := c.GetMachine(t.Context(), m.ID); err != nil || !maps.Equal(shown.Labels, m.Labels) || shown.Marks != m.Marks {
					t.Errorf("%+v, want %+v, %v", shown, m, err)
				}
			})
		})
	}
}

// TestRename gives a VM another name and key, by one call, and finds it by that key only.
func TestRename(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		from := testSpec()
		from.Labels = map[string]string{"role": "web"}
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		to := completed(renamed(from, "web-1"))
		cluster.ClearCalls()
		m, err := s.edit(t.Context(), from, to)
		if err != nil {
			t.Fatal(err)
		}
		writes := slices.DeleteFunc(calls(cluster), func(call string) bool { return strings.HasPrefix(call, "GET") })
		if len(writes) != 1 || s.off {
			t.Errorf("calls %v", writes)
		}
		got, err := c.GetMachine(t.Context(), s.m.ID)
		if err != nil || got.Name != "web-1" || got.Marks != to.Marks || got.Labels["role"] != "web" || m.Name != "web-1" || m.ID != s.m.ID || m.Marks != to.Marks {
			t.Errorf("%+v, %+v, %v", got, m, err)
		}
		for key, want := range map[string]int{from.Marks.Key: 0, to.Marks.Key: 1} {
			if found, err := c.FindMachines(t.Context(), key); err != nil || len(found) != want {
				t.Errorf("%s: %+v, %v", key, found, err)
			}
		}
		// The old name is free: a new VM of it gets another VMID.
		other := mustCreate(t, c, from)
		if other.ID == s.m.ID {
			t.Error("the new VM has the old one's VMID")
		}
		if _, err := s.edit(t.Context(), from, to); err != nil || s.off {
			t.Errorf("again: %v", err)
		}
	})
}

// TestRenameToOthersName is refused before anything is changed, and in the plan.
func TestRenameToOthersName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		from := testSpec()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		to := completed(renamed(from, "web-1"))
		holder := mustCreate(t, c, to)
		before := emulatedVM(t, cluster, s.m.ID).Config
		_, err := s.edit(t.Context(), from, to)
		taken, ok := errors.AsType[*backends.NameTaken](err)
		if !ok || taken.Holder.ID != holder.ID {
			t.Fatalf("%v", err)
		}
		if after := emulatedVM(t, cluster, s.m.ID).Config; !maps.Equal(after, before) {
			t.Errorf("%v", after)
		}
		_, issues, err := c.CheckEdit(t.Context(), s.m, from, to)
		if err != nil || len(issues) != 1 || issues[0].Code != backends.Conflict || issues[0].Path.String() != "name" {
			t.Fatalf("%v, %v", issues, err)
		}
		if _, ok := errors.AsType[*backends.NameTaken](error(issues[0])); !ok {
			t.Errorf("%#v", issues[0])
		}
	})
}

// TestEditClaimedMeanwhile changes nothing of a VM that another run has claimed, nor of a
// stranger's.
func TestEditClaimedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		from := testSpec()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		marks := s.m.Marks
		marks.Claim = "0ther"
		if _, err := c.MarkMachine(t.Context(), s.m, marks); err != nil {
			t.Fatal(err)
		}
		to := completed(with(from, backends.Values{"cpu_type": "host"}))
		_, err := s.edit(t.Context(), from, to)
		wantCode(t, err, backends.Conflict)
		_, err = s.around(t.Context(), func(off backends.PowerDown) (backends.Machine, error) {
			return c.Resize(t.Context(), s.m, to, false, off)
		})
		wantCode(t, err, backends.Conflict)
		cluster.PutStranger(atoi(t, s.m.ID), "pve1", "theirs", "", "")
		_, err = s.edit(t.Context(), from, to)
		wantCode(t, err, backends.AccessDenied)
		if s.off || emulatedVM(t, cluster, s.m.ID).Config["cpu"] != "" {
			t.Errorf("%+v", emulatedVM(t, cluster, s.m.ID))
		}
	})
}

// TestEditPool moves a VM into another resource pool, and says which one isn't there.
func TestEditPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := emulated.Options{Pools: []string{"one", "two"}}
		c, cluster := emulate(t, options, backends.Values{"pool": "one"})
		from := testSpec()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		for _, pool := range []string{"two", "two", "one"} {
			if _, err := s.edit(t.Context(), from, completed(with(from, backends.Values{"pool_id": pool}))); err != nil {
				t.Fatal(err)
			}
			if got := emulatedVM(t, cluster, s.m.ID).Pool; got != pool {
				t.Errorf("in %q, want %q", got, pool)
			}
		}
		_, err := s.edit(t.Context(), from, completed(with(from, backends.Values{"pool_id": "three"})))
		if e := wantError(t, err); e.Path.String() != "proxmox.pool_id" || e.Remedy != poolRemedy {
			t.Errorf("%+v", e)
		}
		if got := emulatedVM(t, cluster, s.m.ID).Pool; got != "one" {
			t.Errorf("in %q", got)
		}
	})
}

// TestEditUnplugged: a card that a running VM can't take leaves nothing pending.
func TestEditUnplugged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		from := testSpec()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		before := emulatedVM(t, cluster, s.m.ID).Config["net0"]
		to := completed(from)
		to.Network = "vmbr9"
		_, err := s.edit(t.Context(), from, to)
		if e := wantError(t, err); !strings.Contains(e.Message, "bridge 'vmbr9' does not exist") || e.Remedy == "" {
			t.Errorf("%+v", e)
		}
		if v := emulatedVM(t, cluster, s.m.ID); v.Config["net0"] != before || len(v.Pending) > 0 {
			t.Errorf("%v, pending %v", v.Config["net0"], v.Pending)
		}
	})
}

// TestEditPendingByHand: what someone has set, and what waits for a start, is brought
// into force.
func TestEditPendingByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		from := testSpec()
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		v, err := c.own(t.Context(), "test", s.m)
		if err != nil {
			t.Fatal(err)
		}
		to := completed(with(from, backends.Values{"cpu_type": "host"}))
		if err := c.setOptions(t.Context(), "test", v, map[string][]string{"cpu": {"host"}}); err != nil {
			t.Fatal(err)
		}
		if len(emulatedVM(t, cluster, s.m.ID).Pending) == 0 {
			t.Fatal("nothing is pending")
		}
		if _, err := s.edit(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		if v := emulatedVM(t, cluster, s.m.ID); !s.off || v.Config["cpu"] != "host" || len(v.Pending) > 0 || !v.Running {
			t.Errorf("%v, pending %v", v.Config["cpu"], v.Pending)
		}
	})
}

// TestEditInterrupted loses and refuses each call of an edit once; the next edit, to this
// wish or to another, ends as one that nothing happened to.
func TestEditInterrupted(t *testing.T) {
	from := with(testSpec(), backends.Values{"tags": []any{"a"}})
	from.Labels = map[string]string{"role": "web"}
	wishes := map[string]backends.MachineSpec{}
	first := completed(renamed(with(from, backends.Values{"tags": []any{"b"}, "cpu_type": "host", "ip_config": static(6)["ip_config"], "pool_id": "tofu"}), "web-1"))
	first.Labels = map[string]string{"role": "db"}
	// A tag of an edit that was cut off, and that no wish names, can't be told from others'.
	other := completed(renamed(with(from, backends.Values{"tags": []any{"b", "c"}, "cpu_type": "kvm64", "pool_id": "tofu"}), "web-2"))
	other.Labels = map[string]string{}
	wishes["the same wish"], wishes["another wish"] = first, other
	for _, kind := range []emulator.Kind{emulator.KindLoseAnswer, emulator.KindReset, emulator.KindStatus, emulator.KindLockTimeout} {
		for name, second := range wishes {
			if name == "another wish" && kind != emulator.KindLoseAnswer {
				continue // those leave nothing that the first one doesn't
			}
			for nth := 1; ; nth++ {
				fired := true
				synctest.Test(t, func(t *testing.T) {
					c, cluster := emulate(t, emulated.Options{})
					s := &switched{Client: c, m: mustCreate(t, c, from)}
					cluster.ClearCalls()
					rule := emulator.Rule{Kind: kind, Nth: nth, Times: 1000, Path: "*"}
					if err := cluster.AddFault(rule); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // what is locked is waited for
					defer cancel()
					_, err := s.edit(ctx, from, first)
					cluster.ClearFaults()
					if err == nil {
						fired = false
						return
					}
					// The next run reads it anew.
					m, err := c.GetMachine(t.Context(), s.m.ID)
					if err != nil {
						t.Fatal(err)
					}
					s.m = m
					if _, err := s.edit(t.Context(), from, second); err != nil {
						t.Fatalf("%s, call %d, %s: %v", kind, nth, name, err)
					}
					checkEdited(t, cluster, c, s.m.ID, second)
				})
				if !fired {
					break
				}
			}
		}
	}
}

func checkEdited(t *testing.T, cluster *emulated.Service, c *Client, id string, to backends.MachineSpec) {
	t.Helper()
	v := emulatedVM(t, cluster, id)
	m, err := c.GetMachine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != to.Name || m.Marks != to.Marks || v.Config["cpu"] != to.Options.String("cpu_type") || len(v.Pending) > 0 || v.Pool != "tofu" {
		t.Errorf("%+v, %+v", m, v)
	}
	want := append(specTags(to), "debian", "template")
	slices.Sort(want)
	if got := foreignTags(v.Tags); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
