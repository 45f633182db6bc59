// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"fmt"
	"slices"
	"strings"
)

// selector is a parsed label selector: requirements that must all hold.
type selector []requirement

type requirement struct {
	key string
	// negated turns the requirement around: !k, k!=v, k notin (…).
	negated bool
	// values are those that fit; nil: the label only has to exist.
	values []string
}

// parseSelector reads a label selector: k, !k, k=v, k==v, k!=v, k in (a,b),
// k notin (a,b), joined by commas, with spaces allowed between the parts.
func parseSelector(text string) (selector, error) {
	s := &scanner{rest: text}
	var parsed selector
	for {
		requirement, err := s.requirement()
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, requirement)
		s.space()
		if s.rest == "" {
			return parsed, nil
		}
		if !s.take(",") {
			return nil, fmt.Errorf("unexpected %q in label selector", s.rest)
		}
	}
}

// matches tells whether labels fit: as in Kubernetes, a negated value also fits
// where the label is absent.
func (s selector) matches(labels map[string]string) bool {
	for _, r := range s {
		value, exists := labels[r.key]
		fits := exists && (r.values == nil || slices.Contains(r.values, value))
		if fits == r.negated {
			return false
		}
	}
	return true
}

// scanner reads a selector from the left.
type scanner struct{ rest string }

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t") }

func (s *scanner) take(prefix string) bool {
	rest, found := strings.CutPrefix(s.rest, prefix)
	if found {
		s.rest = rest
	}
	return found
}

// word takes everything up to a character that means something.
func (s *scanner) word() string {
	end := strings.IndexAny(s.rest, " \t,=!()")
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

func (s *scanner) requirement() (requirement, error) {
	s.space()
	var r requirement
	if s.take("!") {
		s.space()
		r.negated = true
		return r, s.key(&r)
	}
	if err := s.key(&r); err != nil {
		return r, err
	}
	s.space()
	switch {
	case s.take("!="):
		r.negated = true
		return r, s.value(&r)
	case s.take("=="), s.take("="):
		return r, s.value(&r)
	case s.rest == "" || strings.HasPrefix(s.rest, ","):
		return r, nil
	}
	switch operator := s.word(); operator {
	case "in":
	case "notin":
		r.negated = true
	default:
		return r, fmt.Errorf("unexpected %q in label selector", operator+s.rest)
	}
	return r, s.set(&r)
}

func (s *scanner) key(r *requirement) error {
	r.key = s.word()
	if problem := labelKeyProblem(r.key); problem != "" {
		return fmt.Errorf("label key %q in label selector: %s", r.key, problem)
	}
	return nil
}

// value takes one value, which may be empty, and adds it.
func (s *scanner) value(r *requirement) error {
	s.space()
	value := s.word()
	if problem := labelValueProblem(value); problem != "" {
		return fmt.Errorf("label value %q in label selector: %s", value, problem)
	}
	r.values = append(r.values, value)
	return nil
}

func (s *scanner) set(r *requirement) error {
	s.space()
	if !s.take("(") {
		return fmt.Errorf("label selector has no ( after in or notin")
	}
	for {
		if err := s.value(r); err != nil {
			return err
		}
		s.space()
		switch {
		case s.take(")"):
			return nil
		case !s.take(","):
			return fmt.Errorf("label selector has no ) after in or notin")
		}
	}
}
