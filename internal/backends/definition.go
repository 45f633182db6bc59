// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind is what a cloud provides.
type Kind string

// The kinds of machines.
const (
	KindVPS   Kind = "vps"
	KindMetal Kind = "metal"
)

// Definition is a cloud as code; an account is a cloud as data. It is the
// counterpart of the specification's defineProvider.
type Definition struct {
	ID          string // lower-case letters, digits, hyphens: hetzner-cloud
	Title       string // for people: Hetzner Cloud
	Version     string // of the backend, semantic
	Provides    []Kind
	Description string // one sentence for the documentation
	Manifest    Manifest
	// ListLag is how long a new object may be missing from the cloud's lists. After
	// an ambiguous create the lists are watched that long; 0 means 10 s.
	ListLag time.Duration
	// CheckAccount reports what the fields alone can't tell about an account's
	// configuration, such as two that exclude each other. Defaults are filled in.
	// The issues' paths are relative to the account's attribute: Path{"vmid_max"}, not
	// Path{"proxmox", "vmid_max"}; one that begins with the attribute's name is taken
	// as it is. It makes no call. Optional.
	CheckAccount func(config Values) []*Error
	// Region is where an account's machines are made when they name no region.
	Region func(config Values) string
	// Create builds the client. It makes no call and resolves no secret; defaults
	// are filled in.
	Create func(config Values, env Environment) (Backend, error)
	// Moves are the resources of other providers that can be moved here. Optional.
	Moves Moves
}

// Attribute is the name of the cloud's attribute in accounts, instances and
// volumes: its id in snake_case.
func (d *Definition) Attribute() string { return strings.ReplaceAll(d.ID, "-", "_") }

// Environment is what a backend gets besides its configuration.
type Environment struct {
	Secrets Secrets
	// Transport carries the requests; nil means a transport of [NewTransport].
	Transport http.RoundTripper
	// Wrap is put around the transport that carries the requests, be it this one or
	// the backend's own, to count or record them; see [Environment.Wrapped]. Optional.
	Wrap      func(http.RoundTripper) http.RoundTripper
	UserAgent string
	Log       *slog.Logger // never nil
	// Limits are the limiters to share; nil: those of the process (see [LimitsOf]).
	Limits *Limits
}

// Wrapped is a transport as a backend uses it: with what [Environment.Wrap] puts
// around it.
func (e Environment) Wrapped(transport http.RoundTripper) http.RoundTripper {
	if e.Wrap == nil {
		return transport
	}
	return e.Wrap(transport)
}

var definitionID = regexp.MustCompile(`^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$`)

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$`)

// Check finds what is wrong with a definition. That its attribute collides with
// none of a resource's own is for whoever declares those to see. Every refusal is INVALID_CONFIG
// with details.path.
func (d *Definition) Check() error {
	switch {
	case !definitionID.MatchString(d.ID):
		return definitionError("id", "an id is lower-case letters, digits and hyphens")
	case d.Title == "":
		return definitionError("title", "a title is required")
	case !semver.MatchString(d.Version):
		return definitionError("version", "a version is semantic, such as 1.0.0")
	case len(d.Provides) == 0:
		return definitionError("provides", "it is vps, metal or both")
	case d.ListLag < 0:
		return definitionError("list_lag", "a duration is not negative")
	case d.Create == nil:
		return definitionError("create", "a function that builds the backend is required")
	case d.Region == nil:
		return definitionError("region", "a function that gives an account's region is required")
	}
	for i, k := range d.Provides {
		if k != KindVPS && k != KindMetal {
			return definitionError(fmt.Sprintf("provides[%d]", i), "it is vps, metal or both")
		}
	}
	if err := checkURIFields(d.Manifest.Account, "manifest.account"); err != nil {
		return err
	}
	if err := checkFields(d.Manifest.Account, "manifest.account"); err != nil {
		return err
	}
	if err := checkFields(d.Manifest.Machine, "manifest.machine"); err != nil {
		return err
	}
	if err := checkFields(d.Manifest.Volume, "manifest.volume"); err != nil {
		return err
	}
	return checkMoves(d.Moves)
}

func definitionError(path, problem string) *Error {
	e := Errorf(InvalidConfig, "Definition: %s: %s.", path, problem)
	e.Details = map[string]any{"path": path}
	return e
}

// Registry holds the known clouds by id.
type Registry struct{ definitions map[string]*Definition }

// NewRegistry checks the definitions and refuses one that is wrong or comes twice.
func NewRegistry(definitions ...*Definition) (*Registry, error) {
	r := &Registry{definitions: make(map[string]*Definition, len(definitions))}
	for _, d := range definitions {
		if d == nil {
			return nil, definitionError("", "a definition is nil")
		}
		if err := d.Check(); err != nil {
			return nil, fmt.Errorf("definition %q: %w", d.ID, err)
		}
		if _, ok := r.definitions[d.ID]; ok {
			return nil, fmt.Errorf("definition %q: %w", d.ID, definitionError("id", "it is registered twice"))
		}
		r.definitions[d.ID] = d
	}
	return r, nil
}

// Lookup is the definition with that id.
func (r *Registry) Lookup(id string) (*Definition, bool) {
	d, ok := r.definitions[id]
	return d, ok
}

// All are the definitions, by id.
func (r *Registry) All() []*Definition {
	out := make([]*Definition, 0, len(r.definitions))
	for _, id := range r.IDs() {
		out = append(out, r.definitions[id])
	}
	return out
}

// IDs are the known ids, sorted.
func (r *Registry) IDs() []string { return slices.Sorted(maps.Keys(r.definitions)) }
