// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import (
	"maps"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// The labels of [backends.Marks], below the prefix.
const (
	labelManaged  = "managed"
	labelKey      = "idempotency-key"
	labelAccount  = "account"
	labelPool     = "pool"
	labelDigest   = "digest"
	labelClaim    = "claim"
	labelComplete = "complete"
	// labelGoes is of volumes: [backends.Marks.GoesWithMachine].
	labelGoes = "delete-with-instance"
)

const labelTrue = "true"

// markLabels writes marks as labels and reads them back.
type markLabels struct{ prefix string }

func (l markLabels) name(mark string) string { return l.prefix + "/" + mark }

// read is the zero value for an object without the managed marker.
func (l markLabels) read(labels map[string]string) backends.Marks {
	if labels[l.name(labelManaged)] != labelTrue {
		return backends.Marks{}
	}
	return backends.Marks{
		Managed:  true,
		Key:      labels[l.name(labelKey)],
		Account:  labels[l.name(labelAccount)],
		Pool:     labels[l.name(labelPool)],
		Digest:   labels[l.name(labelDigest)],
		Claim:    labels[l.name(labelClaim)],
		Complete: labels[l.name(labelComplete)] == labelTrue,

		GoesWithMachine: labels[l.name(labelGoes)] == labelTrue,
	}
}

// foreign are the labels that aren't marks.
func (l markLabels) foreign(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, l.prefix+"/") })
	return out
}

// write is labels with marks for ours and everything else kept. An empty mark has
// no label.
func (l markLabels) write(labels map[string]string, marks backends.Marks) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, l.prefix+"/") })
	set := func(mark, value string) {
		if value != "" {
			out[l.name(mark)] = value
		}
	}
	if marks.Managed {
		set(labelManaged, labelTrue)
	}
	set(labelKey, marks.Key)
	set(labelAccount, marks.Account)
	set(labelPool, marks.Pool)
	set(labelDigest, marks.Digest)
	set(labelClaim, marks.Claim)
	if marks.Complete {
		set(labelComplete, labelTrue)
	}
	if marks.GoesWithMachine {
		set(labelGoes, labelTrue)
	}
	return out
}

// selector selects managed objects with the given marks: pairs of mark and value.
// A value that can't be a label's can't be on any object, and must not become
// selector syntax: ok is false.
func (l markLabels) selector(pairs ...string) (selector string, ok bool) {
	parts := []string{l.name(labelManaged) + "=" + labelTrue}
	for i := 0; i+1 < len(pairs); i += 2 {
		mark, value := pairs[i], pairs[i+1]
		if len(value) > maxLabelPart || !labelPart.MatchString(value) {
			return "", false
		}
		parts = append(parts, l.name(mark)+"="+value)
	}
	return strings.Join(parts, ","), true
}

// selectorOf selects what a filter holds, but for a status.
func (l markLabels) selectorOf(filter backends.Filter) (selector string, ok bool) {
	var pairs []string
	if filter.Account != "" {
		pairs = append(pairs, labelAccount, filter.Account)
	}
	if filter.Pool != "" {
		pairs = append(pairs, labelPool, filter.Pool)
	}
	selector, ok = l.selector(pairs...)
	if filter.Phase == backends.PhaseMaking {
		selector += ",!" + l.name(labelComplete)
	}
	return selector, ok
}
