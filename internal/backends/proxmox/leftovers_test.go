// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	emulated "github.com/better-compute/terraform-provider-bettercompute/internal/emulator/proxmox"
)

// dataSpec is the wish with user data; it stays off, since the emulated nodes don't
// read the folder.
func dataSpec(n int) backends.MachineSpec {
	spec := testSpec()
	spec.Start = false
	spec.UserData = fmt.Sprintf("#cloud-config\nrun: %d\n", n)
	spec.Marks.Digest = backends.Digest(testKey, map[backends.DigestField]string{backends.DigestUserData: spec.UserData})
	return spec
}

// TestNoSnippetIsLeft ends what is done to a VM at many places: of the files of its key
// those stay that it names, and in the end none. Another key's stay.
func TestNoSnippetIsLeft(t *testing.T) {
	refuse := func(t *testing.T, cluster *emulated.Service, method, path string) {
		t.Helper()
		if err := cluster.AddFault(emulator.Rule{Method: method, Path: path, Nth: 1, Times: emulator.Forever, Kind: emulator.KindStatus, Status: 403}); err != nil {
			t.Fatal(err)
		}
	}
	type step func(context.Context, *testing.T, *withSnippets, *emulated.Service, backends.Machine) (files int)
	for name, do := range map[string]step{
		"configuring fails, then it is deleted": func(ctx context.Context, t *testing.T, w *withSnippets, cluster *emulated.Service, m backends.Machine) int {
			refuse(t, cluster, "PUT", "*/config")
			if _, err := w.FinishMachine(ctx, m, dataSpec(1)); err == nil {
				t.Error("it went well")
			}
			cluster.ClearFaults()
			if err := w.DeleteMachine(ctx, m); err != nil {
				t.Error(err)
			}
			return 0
		},
		"configuring fails, then it gets other user data": func(ctx context.Context, t *testing.T, w *withSnippets, cluster *emulated.Service, m backends.Machine) int {
			refuse(t, cluster, "PUT", "*/config")
			if _, err := w.FinishMachine(ctx, m, dataSpec(1)); err == nil {
				t.Error("it went well")
			}
			cluster.ClearFaults()
			if _, err := complete(ctx, w.Client, m, dataSpec(2)); err != nil {
				t.Error(err)
			}
			return 2
		},
		"it is removed by hand": func(ctx context.Context, t *testing.T, w *withSnippets, cluster *emulated.Service, m backends.Machine) int {
			if _, err := complete(ctx, w.Client, m, dataSpec(1)); err != nil {
				t.Error(err)
			}
			cluster.Delete(atoi(t, m.ID))
			if err := w.SweepMachine(ctx, testKey); err != nil {
				t.Error(err)
			}
			return 0
		},
		"a reinstallation is refused": func(ctx context.Context, t *testing.T, w *withSnippets, cluster *emulated.Service, m backends.Machine) int {
			m, err := complete(ctx, w.Client, m, dataSpec(1))
			if err != nil {
				t.Error(err)
			}
			refuse(t, cluster, "POST", "*/clone")
			if err := w.ReinstallWithUserData(ctx, m, dataSpec(2)); err == nil {
				t.Error("it went well")
			}
			return 2
		},
		"the old VM of a reinstallation can't be destroyed": func(ctx context.Context, t *testing.T, w *withSnippets, cluster *emulated.Service, m backends.Machine) int {
			m, err := complete(ctx, w.Client, m, dataSpec(1))
			if err != nil {
				t.Error(err)
			}
			refuse(t, cluster, "DELETE", "*")
			if err := w.ReinstallWithUserData(ctx, m, dataSpec(2)); err == nil {
				t.Error("it went well")
			}
			return 2
		},
		"it is reinstalled with other user data": func(ctx context.Context, t *testing.T, w *withSnippets, _ *emulated.Service, m backends.Machine) int {
			m, err := complete(ctx, w.Client, m, dataSpec(1))
			if err == nil {
				err = w.ReinstallWithUserData(ctx, m, dataSpec(2))
			}
			if err != nil {
				t.Error(err)
			}
			return 2
		},
		"it is reinstalled without": func(ctx context.Context, t *testing.T, w *withSnippets, _ *emulated.Service, m backends.Machine) int {
			m, err := complete(ctx, w.Client, m, dataSpec(1))
			if err == nil {
				err = w.ReinstallWithUserData(ctx, m, testSpec())
			}
			if err != nil {
				t.Error(err)
			}
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				c, cluster := emulate(t, emulated.Options{}, backends.Values{"snippets": backends.Values{"storage": "local", "directory": folder}})
				another := snippetPrefix("inst_other") + strings.Repeat("0", 24) + ".yaml"
				if err := os.WriteFile(filepath.Join(folder, another), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				m, err := c.MakeMachine(t.Context(), dataSpec(1))
				if err != nil {
					t.Fatal(err)
				}
				want := do(t.Context(), t, &withSnippets{c}, cluster, m)
				left := slices.DeleteFunc(names(t, folder), func(name string) bool { return name == another })
				if len(left) != want || len(names(t, folder)) != want+1 {
					t.Errorf("%q", names(t, folder))
				}
				for _, v := range cluster.Machines() {
					for _, name := range left {
						if !strings.Contains(v.Config["cicustom"], name) {
							t.Errorf("%s isn't named: %s", name, v.Config["cicustom"])
						}
					}
				}
			})
		})
	}
}

// deaf is a store that nothing may be asked of.
type deaf struct {
	snippetStore
	t *testing.T
}

func (d deaf) write(context.Context, []snippet) error {
	d.t.Error("a file was written")
	return nil
}

func (d deaf) sweep(context.Context, string, []string) error {
	d.t.Error("files were looked for")
	return nil
}

// TestNoUserDataNoFiles: machines without user data cost no look at the files.
func TestNoUserDataNoFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := emulate(t, emulated.Options{}, backends.Values{"snippets": backends.Values{"storage": "local", "directory": t.TempDir()}})
		c.snippets = deaf{t: t}
		m := mustCreate(t, c, testSpec())
		if err := c.Reinstall(t.Context(), m, testSpec()); err != nil {
			t.Error(err)
		}
		if err := c.DeleteMachine(t.Context(), m); err != nil {
			t.Error(err)
		}
	})
}

// TestLeftWithoutSnippets says what is left of a VM whose account has lost its snippets.
func TestLeftWithoutSnippets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cluster := emulate(t, emulated.Options{}, backends.Values{"snippets": backends.Values{"storage": "local", "directory": t.TempDir()}})
		m := mustCreate(t, c, dataSpec(1))
		var said []string
		ctx := backends.WithWarnings(t.Context(), func(text string) { said = append(said, text) })
		if err := clientOf(t, emulator.Transport(cluster)).DeleteMachine(ctx, m); err != nil {
			t.Fatal(err)
		}
		if len(said) != 1 || !strings.Contains(said[0], snippetPrefix(testKey)) {
			t.Errorf("%q", said)
		}
	})
}
