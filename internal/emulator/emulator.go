// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"fmt"
	"sync"
)

// Emulator owns the services of one process, their control API and their state
// file.
type Emulator struct {
	services []Service
	// state is the path of the state file; empty: nothing is kept.
	state string
	// report is told what goes wrong outside of any call.
	report func(error)
	saving sync.Mutex
}

// New returns an emulator of the services. With a state file it restores what
// the file holds, if there is one, and writes it after each change; report is
// told of a write that failed.
func New(stateFile string, report func(error), services ...Service) (*Emulator, error) {
	e := &Emulator{services: services, state: stateFile, report: report}
	seen := map[string]bool{}
	for _, service := range services {
		name := service.Gate().Name()
		if seen[name] {
			return nil, fmt.Errorf("two services are called %q", name)
		}
		seen[name] = true
	}
	if stateFile == "" {
		return e, nil
	}
	if err := e.load(); err != nil {
		return nil, err
	}
	for _, service := range services {
		service.Gate().onChange = e.saveAfterChange
	}
	return e, nil
}
