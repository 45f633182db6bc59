// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

const (
	stateFile  = "terraform.tfstate"
	backupFile = "terraform.tfstate.backup"
)

// record is an object of a cloud as a state has it.
type record struct{ name, id, claim, status string }

// recorded are the machines and volumes in the state; none where there is no state.
func (s *workspace) recorded(t *testing.T) (machines, volumes []record) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.folder, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Resources []struct {
			Type      string
			Instances []struct {
				Status     string
				Attributes struct {
					Name, Claim string
					MachineID   string `json:"machine_id"`
					VolumeID    string `json:"volume_id"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatalf("the state isn't JSON: %s", err)
	}
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			a := i.Attributes
			switch r.Type {
			case "bettercompute_instance":
				machines = append(machines, record{a.Name, a.MachineID, a.Claim, i.Status})
			case "bettercompute_provider_volume":
				volumes = append(volumes, record{a.Name, a.VolumeID, a.Claim, i.Status})
			}
		}
	}
	return machines, volumes
}

// loseState removes the state, as a job does that dies before it has pushed it.
func (s *workspace) loseState(t *testing.T) {
	t.Helper()
	for _, name := range []string{stateFile, backupFile} {
		if err := os.Remove(filepath.Join(s.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
