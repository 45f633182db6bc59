// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package emulator

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// faultSet holds the rules of one service and counts what they matched.
type faultSet struct {
	mu    sync.Mutex
	rules []*activeRule
}

type activeRule struct {
	Rule
	matches int
	// gone is closed when the rule is deleted; held calls wait for it.
	gone chan struct{}
}

func (s *faultSet) add(rule Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &activeRule{Rule: rule, gone: make(chan struct{})})
}

func (s *faultSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range s.rules {
		close(rule.gone)
	}
	s.rules = nil
}

func (s *faultSet) list() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := make([]Rule, len(s.rules))
	for i, rule := range s.rules {
		rules[i] = rule.Rule
	}
	return rules
}

// match counts a call for every rule that matches it and returns those rules
// that apply to it, in the order in which they were set.
func (s *faultSet) match(method, basePath, path string) []*activeRule {
	s.mu.Lock()
	defer s.mu.Unlock()
	var applying []*activeRule
	for _, rule := range s.rules {
		if !rule.matchesCall(method, basePath, path) {
			continue
		}
		rule.matches++
		if rule.matches < rule.Nth {
			continue
		}
		if rule.Times == Forever || rule.matches < rule.Nth+rule.Times {
			applying = append(applying, rule)
		}
	}
	return applying
}

func (r *Rule) matchesCall(method, basePath, path string) bool {
	if r.Method != "" && r.Method != "*" && r.Method != method {
		return false
	}
	if r.Path == "" || matchPath(r.Path, path) {
		return true
	}
	below, found := strings.CutPrefix(path, basePath)
	return found && matchPath(r.Path, below)
}

// matchPath matches a pattern in which "*" stands for any run of characters.
func matchPath(pattern, path string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == path
	}
	rest, found := strings.CutPrefix(path, parts[0])
	if !found {
		return false
	}
	last := parts[len(parts)-1]
	// The shortest match of every middle part leaves the most for the rest, so
	// no backtracking is needed.
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, last)
}

type faultsKey struct{}

func withFaults(ctx context.Context, rules []Rule) context.Context {
	return context.WithValue(ctx, faultsKey{}, rules)
}

// FaultFor returns the first rule of one of the kinds that applies to the call
// with this context, for a [Backend] that carries the kind out itself.
func FaultFor(ctx context.Context, kinds ...Kind) (Rule, bool) {
	rules, _ := ctx.Value(faultsKey{}).([]Rule)
	for _, rule := range rules {
		if slices.Contains(kinds, rule.Kind) {
			return rule, true
		}
	}
	return Rule{}, false
}
