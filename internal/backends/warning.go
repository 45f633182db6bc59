// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import "context"

type warningsKey struct{}

// WithWarnings is a context whose operations report what went well and is worth a
// look all the same, such as a task that ended with warnings.
func WithWarnings(ctx context.Context, report func(text string)) context.Context {
	return context.WithValue(ctx, warningsKey{}, report)
}

// Warn reports a warning to whoever runs the operation. Without anybody it is lost.
// It is safe for concurrent use if what was given to [WithWarnings] is.
func Warn(ctx context.Context, text string) {
	if report, ok := ctx.Value(warningsKey{}).(func(string)); ok {
		report(text)
	}
}
