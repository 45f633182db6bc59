// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// Moves are the resources of other providers whose objects an account of the cloud can
// take over by a `moved` block: the vendor's own provider, or the usual one. They read
// the other resource's state and make no call.
type Moves struct {
	Machines  []Move[MovedMachine]
	Volumes   []Move[MovedVolume]
	Snapshots []Move[Snapshot]
}

// Move reads the state of one resource type of another provider.
type Move[T any] struct {
	// Provider is the last part of the other provider's address, hcloud in
	// registry.terraform.io/hetznercloud/hcloud: the rest says who publishes it, and
	// mirrors and forks differ there.
	Provider string
	Resource string // the resource type, such as hcloud_server
	// Read takes what it knows of the object out of the state. What isn't there, or
	// isn't sure, stays empty. An error says what is missing.
	Read func(VendorState) (T, error)
}

// MovedMachine is a machine as another provider's state shows it.
type MovedMachine struct {
	Machine
	// Image is the image as it was asked for; "" where the state doesn't say it.
	Image string
}

// MovedVolume is a volume as another provider's state shows it.
type MovedVolume struct {
	Volume
	// Filesystem is what it was formatted with; "" where the state doesn't say it.
	Filesystem string
}

// VendorState is the state of a resource of another provider, as its JSON. It is read
// without that provider's schema, which changes from version to version: numbers may be
// texts and the other way round, and what isn't there, or is something else by now, is
// empty.
type VendorState map[string]any

// ReadVendorState reads a state's JSON. The error holds nothing of the state.
func ReadVendorState(raw []byte) (VendorState, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // an id may be longer than a float's digits
	var out VendorState
	err := d.Decode(&out)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows the state")
	}
	if err != nil || out == nil {
		return nil, Errorf(InvalidState, "The state to move from can't be read: it is no JSON object.").
			WithRemedy("A state that was written by a version before Terraform 0.12 is upgraded by one apply with the other provider's resource; then move it.")
	}
	return out, nil
}

// Text is the first of the attributes that has a text or a number.
func (s VendorState) Text(names ...string) string {
	for _, name := range names {
		switch x := s[name].(type) {
		case string:
			if x != "" {
				return x
			}
		case json.Number:
			return x.String()
		}
	}
	return ""
}

// Whole is the whole number of an attribute; 0 when it has none.
func (s VendorState) Whole(name string) int64 {
	n, err := json.Number(s.Text(name)).Int64()
	if err != nil {
		return 0
	}
	return n
}

// Truth is the truth of an attribute, and whether it has one.
func (s VendorState) Truth(name string) (value, known bool) {
	value, known = s[name].(bool)
	return value, known
}

// Objects are the nested objects of an attribute: a block, or a list of objects.
func (s VendorState) Objects(name string) []VendorState {
	elements, ok := s[name].([]any)
	if !ok {
		elements = []any{s[name]}
	}
	var out []VendorState
	for _, e := range elements {
		if o, ok := e.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// Texts are the texts of an attribute: a list of them, or one.
func (s VendorState) Texts(name string) []string { return textsIn(s[name]) }

// Lists are the lists of texts that an attribute is a list of.
func (s VendorState) Lists(name string) [][]string {
	elements, _ := s[name].([]any)
	var out [][]string
	for _, e := range elements {
		if list, ok := e.([]any); ok {
			out = append(out, textsIn(list))
		}
	}
	return out
}

func textsIn(v any) []string {
	elements, ok := v.([]any)
	if !ok {
		elements = []any{v}
	}
	var out []string
	for _, e := range elements {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// Required is the error of a state that lacks what names an object in its cloud.
func (s VendorState) Required(resource string, attributes map[string]string) error {
	var missing []string
	for _, name := range []string{"id", "name"} {
		if attributes[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return Errorf(InvalidState, "The state of the %s has no %s, so nothing says which object it is.", resource, strings.Join(missing, " and no ")).
		WithRemedy("Apply the %s once more with its own provider, which fills its state in; then move it. Or forget it (removed with destroy = false), and import the object.", resource)
}

// AddressOf is a text of a vendor's state as an address, of that scope; nil when it is
// none.
func AddressOf(text string, scope Scope) []Address {
	a, err := netip.ParseAddr(text)
	if err != nil || a.IsUnspecified() {
		return nil
	}
	family := IPv4
	if a = a.Unmap(); a.Is6() {
		family = IPv6
	}
	return []Address{{Address: a.String(), Family: family, Scope: scope}}
}

// checkMoves finds moves that lack something, or that come twice.
func checkMoves(m Moves) error {
	if err := checkMovesOf(m.Machines, "moves.machines"); err != nil {
		return err
	}
	if err := checkMovesOf(m.Volumes, "moves.volumes"); err != nil {
		return err
	}
	return checkMovesOf(m.Snapshots, "moves.snapshots")
}

func checkMovesOf[T any](moves []Move[T], path string) error {
	seen := map[string]bool{}
	for i, m := range moves {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case m.Provider == "" || m.Resource == "" || m.Read == nil:
			return definitionError(at, "the other provider's name, its resource type and a function that reads its state are required")
		case seen[m.Provider+" "+m.Resource]:
			return definitionError(at, "it comes twice")
		}
		seen[m.Provider+" "+m.Resource] = true
	}
	return nil
}
