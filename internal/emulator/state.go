// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// stateVersion is the version of the state file's own form. Each service's
// part is that service's.
const stateVersion = 1

type stateFile struct {
	Version  int                        `json:"version"`
	Services map[string]json.RawMessage `json:"services"`
}

// load restores the services from the state file, if it exists.
func (e *Emulator) load() error {
	data, err := os.ReadFile(e.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the state file: %w", err)
	}
	var file stateFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("the state file %s is not one of the emulator's: %w", e.state, err)
	}
	if file.Version != stateVersion {
		return fmt.Errorf("the state file %s has version %d, not %d", e.state, file.Version, stateVersion)
	}
	for _, service := range e.services {
		name := service.Gate().Name()
		snapshot, found := file.Services[name]
		if !found {
			continue
		}
		if err := service.Restore(snapshot); err != nil {
			return fmt.Errorf("the state file %s, service %s: %w", e.state, name, err)
		}
	}
	return nil
}

func (e *Emulator) saveAfterChange() {
	if err := e.Save(); err != nil && e.report != nil {
		e.report(err)
	}
}

// Save writes the state file, whole or not at all: to a temporary file beside
// it, which then takes its place. Without a state file it does nothing. Parts
// of services that this emulator doesn't have are dropped.
func (e *Emulator) Save() (err error) {
	if e.state == "" {
		return nil
	}
	e.saving.Lock()
	defer e.saving.Unlock()
	file := stateFile{Version: stateVersion, Services: map[string]json.RawMessage{}}
	for _, service := range e.services {
		snapshot, err := service.Snapshot()
		if err != nil {
			return fmt.Errorf("state of %s: %w", service.Gate().Name(), err)
		}
		file.Services[service.Gate().Name()] = snapshot
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(e.state), filepath.Base(e.state)+".*.tmp")
	if err != nil {
		return fmt.Errorf("writing the state file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing the state file: %w", err), os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(append(data, '\n'))
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), e.state)
}
