// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// control serves the API that tests drive the emulators with.
type control struct{ emulator *Emulator }

// Control returns the handler of the control API:
//
//	GET    /calls?service=S    the calls since the start or the last DELETE
//	DELETE /calls              forget them (of one service with ?service=S)
//	GET    /objects?service=S  what exists
//	POST   /faults             set a fault (a [Rule]); GET lists those set
//	DELETE /faults             remove all faults (of one service with ?service=S)
//
// A bad request is answered with 400 and {"error": "what is wrong"}.
func (e *Emulator) Control() http.Handler {
	c := control{e}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", c.calls)
	mux.HandleFunc("DELETE /calls", c.clearCalls)
	mux.HandleFunc("GET /objects", c.objects)
	mux.HandleFunc("GET /faults", c.listFaults)
	mux.HandleFunc("POST /faults", c.addFault)
	mux.HandleFunc("DELETE /faults", c.clearFaults)
	return mux
}

func (c control) calls(w http.ResponseWriter, r *http.Request) {
	service, err := c.named(r.URL.Query().Get("service"))
	if err != nil {
		badRequest(w, err)
		return
	}
	calls := service.Gate().Calls()
	respond(w, http.StatusOK, map[string]any{"count": len(calls), "calls": calls})
}

func (c control) clearCalls(w http.ResponseWriter, r *http.Request) {
	c.each(w, r, func(service Service) { service.Gate().ClearCalls() })
}

func (c control) objects(w http.ResponseWriter, r *http.Request) {
	service, err := c.named(r.URL.Query().Get("service"))
	if err != nil {
		badRequest(w, err)
		return
	}
	respond(w, http.StatusOK, service.Objects())
}

func (c control) listFaults(w http.ResponseWriter, _ *http.Request) {
	rules := []Rule{}
	for _, service := range c.emulator.services {
		rules = append(rules, service.Gate().Faults()...)
	}
	respond(w, http.StatusOK, map[string]any{"faults": rules})
}

func (c control) addFault(w http.ResponseWriter, r *http.Request) {
	var rule Rule
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rule); err != nil {
		badRequest(w, fmt.Errorf("the fault is not valid JSON: %w", err))
		return
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		badRequest(w, errors.New("the fault is not valid JSON: something follows the object"))
		return
	}
	service, err := c.named(rule.Service)
	if err != nil {
		badRequest(w, err)
		return
	}
	if err := service.Gate().AddFault(rule); err != nil {
		badRequest(w, err)
		return
	}
	rules := service.Gate().Faults()
	respond(w, http.StatusCreated, map[string]any{"fault": rules[len(rules)-1]})
}

func (c control) clearFaults(w http.ResponseWriter, r *http.Request) {
	c.each(w, r, func(service Service) { service.Gate().ClearFaults() })
}

// each does something with all services, or with the one that is asked for.
func (c control) each(w http.ResponseWriter, r *http.Request, do func(Service)) {
	services := c.emulator.services
	if r.URL.Query().Has("service") {
		service, err := c.named(r.URL.Query().Get("service"))
		if err != nil {
			badRequest(w, err)
			return
		}
		services = []Service{service}
	}
	for _, service := range services {
		do(service)
	}
	w.WriteHeader(http.StatusNoContent)
}

// named finds a service by its name.
func (c control) named(name string) (Service, error) {
	names := make([]string, len(c.emulator.services))
	for i, service := range c.emulator.services {
		names[i] = service.Gate().Name()
	}
	if i := slices.Index(names, name); i >= 0 {
		return c.emulator.services[i], nil
	}
	if name == "" {
		return nil, fmt.Errorf("service is missing; known: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("unknown service %q; known: %s", name, strings.Join(names, ", "))
}

func badRequest(w http.ResponseWriter, err error) {
	respond(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
}

func respond(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone, and nobody is left to tell.
	_, _ = w.Write(append(body, '\n'))
}
