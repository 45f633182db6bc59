// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

func offering(offer string) backends.MachineSpec {
	s := completed(testSpec())
	s.Offer = offer
	return s
}

func (s *switched) resizeTo(ctx context.Context, offer string, grow bool) (backends.Machine, error) {
	return s.around(ctx, func(off backends.PowerDown) (backends.Machine, error) {
		return s.Resize(ctx, s.m, offering(offer), grow, off)
	})
}

func diskOf(v emulated.VM) int64 {
	bytes, _ := vmConfig{"scsi0": scalar(v.Config["scsi0"])}.diskSize("scsi0")
	return bytes / gib
}

// TestResize goes from one offer to the next, and back.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, slow())
		from := testSpec()
		from.Offer = "2c-4g-10d"
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		for _, step := range []struct {
			offer string
			grow  bool
			disk  int64
			off   bool
		}{
			{"2c-4g-10d", false, 10, false},
			{"4c-8g-20d", false, 10, true},
			{"4c-8g-20d", false, 10, false},
			{"2c-4g-10d", false, 10, true},
			{"4c-8g-20d", true, 20, true},
			{"4c-8g-20d", true, 20, false},
			{"4c-8g-30d", true, 30, false},
			{"1c-2g", true, 30, true},
			{"2c-2g-40d", false, 30, true},
		} {
			m, err := s.resizeTo(t.Context(), step.offer, step.grow)
			if err != nil {
				t.Fatal(err)
			}
			v := emulatedVM(t, cluster, m.ID)
			got, err := c.GetMachine(t.Context(), m.ID)
			if err != nil || got.Offer != step.offer || m.Offer != step.offer || got.Marks != s.m.Marks {
				t.Errorf("%s: %+v, %+v, %v", step.offer, m, got, err)
			}
			size, _ := parseOffer(step.offer)
			if config := (vmConfig{"cores": scalar(v.Config["cores"]), "memory": scalar(v.Config["memory"])}); config.cpus() != size.cpus || config.memoryMiB() != size.memoryGiB<<10 {
				t.Errorf("%s: %v", step.offer, v.Config)
			}
			if diskOf(v) != step.disk || s.off != step.off || !v.Running || len(v.Pending) > 0 {
				t.Errorf("%s: disk %d, switched off %v, running %v, pending %v", step.offer, diskOf(v), s.off, v.Running, v.Pending)
			}
			listed, err := c.ListMachines(t.Context(), backends.Filter{Account: from.Marks.Account, Pool: from.Marks.Pool})
			if err != nil {
				t.Fatal(err)
			}
			if all := listed.First; len(all) != 1 || all[0].Offer != step.offer {
				t.Errorf("%s: listed %+v", step.offer, all)
			}
		}
		// A reinstalled VM keeps its disk's size, and is of the same offer.
		if err := c.Reinstall(t.Context(), s.m, offering("2c-2g-40d")); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetMachine(t.Context(), s.m.ID); err != nil || got.Offer != "2c-2g-40d" {
			t.Errorf("reinstalled: %+v, %v", got, err)
		}
	})
}

// TestStartUnderWay: a start that an earlier run asked for is done only while the VM is
// being changed. What was changed is in force all the same.
func TestStartUnderWay(t *testing.T) {
	for name, change := range map[string]func(*switched, context.Context) (backends.Machine, error){
		"resize": func(s *switched, ctx context.Context) (backends.Machine, error) {
			return s.resizeTo(ctx, "4c-8g", false)
		},
		"edit": func(s *switched, ctx context.Context) (backends.Machine, error) {
			return s.edit(ctx, testSpec(), completed(with(testSpec(), backends.Values{"cpu_type": "host", "ip_config": static(6)["ip_config"]})))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, cluster := emulate(t, slow())
			s := &switched{Client: c, m: mustCreate(t, c, testSpec())}
			if err := c.Power(t.Context(), s.m, backends.PowerOff); err != nil {
				t.Fatal(err)
			}
			v, err := c.own(t.Context(), "test", s.m)
			if err == nil {
				_, err = c.begin(t.Context(), backends.Idempotent, "test", request{"POST", v.at("status", "start"), nil})
			}
			if err == nil {
				err = backends.Sleep(t.Context(), time.Second) // it has the lock by then
			}
			if err != nil {
				t.Fatal(err)
			}
			// The first time it is asked for, the VM is off still.
			times, off := 0, s.powerOff
			s.offAs = func(ctx context.Context) error {
				if times++; times == 1 {
					s.off = true
					return nil
				}
				return off(ctx)
			}
			if _, err := change(s, t.Context()); err != nil {
				t.Fatal(name, err)
			}
			after := emulatedVM(t, cluster, s.m.ID)
			if len(after.Pending) > 0 || !after.Running || times != 2 || after.Config["cores"] != map[string]string{"resize": "4", "edit": "2"}[name] {
				t.Errorf("%s: %v, pending %v, switched off %d times", name, after.Config, after.Pending, times)
			}
		})
	}
}

// TestResizeWithoutRoom leaves the VM as it was, and running.
func TestResizeWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		from := testSpec()
		from.Offer = "2c-4g-10d"
		s := &switched{Client: c, m: mustCreate(t, c, from)}
		before := emulatedVM(t, cluster, s.m.ID)
		for offer, fault := range map[string]bool{"2c-512g-10d": false, "2c-8g-20d": true} {
			if fault {
				if err := cluster.AddFault(emulator.Rule{Method: "PUT", Path: "*/resize", Kind: emulator.KindCapacity}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.resizeTo(t.Context(), offer, true)
			if e := wantError(t, err); e.Reason != backends.ReasonCapacity || e.Remedy == "" {
				t.Errorf("%s: %+v", offer, e)
			}
			after := emulatedVM(t, cluster, s.m.ID)
			if !after.Running || s.off || after.Config["memory"] != before.Config["memory"] || after.Config["scsi0"] != before.Config["scsi0"] || after.Config["tags"] != before.Config["tags"] {
				t.Errorf("%s: %+v", offer, after)
			}
			cluster.ClearFaults()
		}
	})
}

// TestStartWithoutRoom: why a VM doesn't start is in its task's log, and said so that who
// has resized it can go back.
func TestStartWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{})
		m := mustCreate(t, c, testSpec())
		if err := c.Power(t.Context(), m, backends.PowerOff); err != nil {
			t.Fatal(err)
		}
		if err := cluster.AddFault(emulator.Rule{Method: "POST", Path: "*/status/start", Kind: emulator.KindCapacity}); err != nil {
			t.Fatal(err)
		}
		if e := wantError(t, c.Power(t.Context(), m, backends.PowerOn)); e.Reason != backends.ReasonCapacity || !strings.Contains(e.Message, "Cannot allocate memory") {
			t.Errorf("%+v", e)
		}
	})
}

// TestResizeInterrupted loses and refuses each call of a resize from some call on; the
// next one ends as one that nothing happened to.
func TestResizeInterrupted(t *testing.T) {
	for _, kind := range []emulator.Kind{emulator.KindLoseAnswer, emulator.KindReset, emulator.KindStatus, emulator.KindLockTimeout, emulator.KindFailAction} {
		for nth := 1; ; nth++ {
			fired := true
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{})
				from := testSpec()
				from.Offer = "2c-4g-10d"
				s := &switched{Client: c, m: mustCreate(t, c, from)}
				if err := cluster.AddFault(emulator.Rule{Kind: kind, Nth: nth, Times: 1000, Path: "*"}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				_, err := s.resizeTo(ctx, "4c-8g-20d", true)
				cluster.ClearFaults()
				if err == nil {
					fired = false
					return
				}
				if s.m, err = c.GetMachine(t.Context(), s.m.ID); err != nil {
					t.Fatal(err)
				}
				m, err := s.resizeTo(t.Context(), "4c-8g-20d", true)
				if err != nil {
					t.Fatalf("%s, call %d: %v", kind, nth, err)
				}
				v := emulatedVM(t, cluster, m.ID)
				got, err := c.GetMachine(t.Context(), m.ID)
				if err != nil || got.Offer != "4c-8g-20d" || v.Config["cores"] != "4" || v.Config["memory"] != "8192" || diskOf(v) != 20 || len(v.Pending) > 0 {
					t.Errorf("%s, call %d: %+v, %v", kind, nth, v, err)
				}
			})
			if !fired {
				break
			}
		}
	}
}

// TestCheckResize: what a plan says of a resize.
func TestCheckResize(t *testing.T) {
	for name, test := range map[string]struct {
		made, to string
		grow     bool
		deny     emulated.Denials
		warning  string
		want     []string
		says     string
	}{
		"larger":           {"2c-4g", "4c-8g", false, nil, "", nil, ""},
		"a larger disk":    {"2c-4g-10d", "4c-8g-20d", true, nil, "grows from 10 GiB to 20 GiB", nil, ""},
		"its disk stays":   {"2c-4g-10d", "4c-8g-20d", false, nil, "stays at 10 GiB", nil, ""},
		"a smaller disk":   {"2c-4g-10d", "4c-8g-5d", false, nil, "", []string{"INVALID_INPUT offer"}, "never shrunk"},
		"the template's":   {"2c-4g-1d", "4c-8g-2d", false, nil, "is kept", nil, ""},
		"too large":        {"2c-4g", "4c-999g", false, nil, "", []string{"CAPACITY_UNAVAILABLE offer"}, "no room"},
		"too large a disk": {"2c-4g-10d", "2c-4g-9999d", true, nil, "grows", []string{"CAPACITY_UNAVAILABLE offer"}, "in all"},
		"no size":          {"2c-4g", "huge", false, nil, "", []string{"INVALID_INPUT offer"}, "is not a size"},
		"no right":         {"2c-4g", "2c-8g", false, emulated.Denials{{Path: "/vms", Privilege: "VM.Config.Memory"}, {Path: "/vms", Privilege: "VM.Config.CPU"}}, "", []string{"PROVIDER_ERROR "}, "VM.Config.Memory on"},
		"no right to grow": {"2c-4g-10d", "2c-4g-20d", true, emulated.Denials{{Path: "/vms", Privilege: "VM.Config.Disk"}}, "grows", []string{"PROVIDER_ERROR "}, "VM.Config.Disk"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, cluster := emulate(t, emulated.Options{})
				from := testSpec()
				from.Offer = test.made
				m := mustCreate(t, c, from)
				m.State = backends.StateRunning
				cluster.SetDenials(test.deny)
				warnings, issues, err := c.CheckResize(t.Context(), m, offering(test.to), test.grow)
				if err != nil || !slices.Equal(paths(issues), test.want) {
					t.Fatalf("%v, %v", issues, err)
				}
				if said := strings.Join(warnings, "\n"); len(warnings) > 1 || (said == "") != (test.warning == "") || !strings.Contains(said, test.warning) {
					t.Errorf("warned %q", warnings)
				}
				for _, e := range issues {
					if !strings.Contains(e.Message, test.says) || e.Remedy == "" {
						t.Errorf("%+v", e)
					}
				}
			})
		})
	}
	c, _ := emulate(t, emulated.Options{}, backends.Values{"offers": []any{"2c-4g", "4c-8g"}})
	if _, issues, err := c.CheckResize(t.Context(), backends.Machine{ID: "101"}, offering("3c-4g"), false); err != nil || len(issues) != 1 || !strings.Contains(issues[0].Remedy, "4c-8g") {
		t.Errorf("%v, %v", issues, err)
	}
}
