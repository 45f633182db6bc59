// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package openapitest

import (
	"fmt"
	"slices"

	"github.com/pb33f/jsonschema/v6"
	"github.com/pb33f/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// problem is something that doesn't fit the description.
type problem struct {
	// text says what; empty where the problem is that none of several schemas
	// fits: then branches has the problems with each of them.
	text     string
	branches [][]problem
}

// allowed tells whether nothing is left of a problem without what a test allows:
// of several schemas one must be left without problems.
func (p problem) allowed(allow func(text string) bool) bool {
	if p.branches == nil {
		return allow(p.text)
	}
	return slices.ContainsFunc(p.branches, func(branch []problem) bool {
		return !slices.ContainsFunc(branch, func(inner problem) bool { return !inner.allowed(allow) })
	})
}

// texts are the problem's, with every schema that doesn't fit.
func (p problem) texts() []string {
	if p.branches == nil {
		return []string{p.text}
	}
	var all []string
	for i, branch := range p.branches {
		for _, inner := range branch {
			for _, text := range inner.texts() {
				all = append(all, fmt.Sprintf("or (%d): %s", i+1, text))
			}
		}
	}
	return all
}

// problemsOf are the problems themselves, without those that only say that there
// are problems below.
func problemsOf(what string, e *jsonschema.ValidationError) []problem {
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		return []problem{{text: fmt.Sprintf("%s %s: %s", what, pointer(e.InstanceLocation...), text)}}
	}
	branches := make([][]problem, len(e.Causes))
	for i, cause := range e.Causes {
		branches[i] = problemsOf(what, cause)
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return []problem{{branches: branches}}
	}
	return slices.Concat(branches...)
}
