// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"fmt"
	"strings"
)

// DefaultProject is the project that tokens see when none are separated.
const DefaultProject = "default"

// Projects maps tokens to the names of the projects they see. It is a
// [flag.Value] that takes TOKEN=NAME any number of times.
type Projects map[string]string

// String lists the names; never the tokens.
func (p Projects) String() string {
	names := make([]string, 0, len(p))
	for _, name := range p {
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// Set adds a project, given as TOKEN=NAME.
func (p Projects) Set(text string) error {
	// A token may have an equals sign in it (user@realm!name=secret), a name has none.
	at := strings.LastIndex(text, "=")
	if at <= 0 || at == len(text)-1 {
		return fmt.Errorf("a project is given as TOKEN=NAME")
	}
	p[text[:at]] = text[at+1:]
	return nil
}

// Find returns the project that a token sees: with no projects set, any token
// that isn't empty sees the default one.
func (p Projects) Find(token string) (name string, ok bool) {
	if token == "" {
		return "", false
	}
	if len(p) == 0 {
		return DefaultProject, true
	}
	name, ok = p[token]
	return name, ok
}
