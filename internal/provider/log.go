// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// logHandler sends what is logged below this package to the plugin's log, with
// the operation's fields when it is logged with the operation's context.
type logHandler struct {
	attributes []slog.Attr
	group      string
}

var _ slog.Handler = logHandler{}

// Enabled implements [slog.Handler]: the plugin's log filters by TF_LOG itself.
func (logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	fields := make(map[string]any, len(h.attributes)+r.NumAttrs())
	for _, a := range h.attributes {
		fields[a.Key] = logged(a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		fields[h.group+a.Key] = logged(a.Value)
		return true
	})
	switch {
	case r.Level >= slog.LevelError:
		tflog.Error(ctx, r.Message, fields)
	case r.Level >= slog.LevelWarn:
		tflog.Warn(ctx, r.Message, fields)
	case r.Level >= slog.LevelInfo:
		tflog.Info(ctx, r.Message, fields)
	default:
		tflog.Debug(ctx, r.Message, fields)
	}
	return nil
}

// logged is a value as it comes into the log: text, in which there may be what a cloud
// said, on one line.
func logged(value slog.Value) any {
	value = value.Resolve()
	if value.Kind() == slog.KindString {
		return backends.OneLine(value.String())
	}
	return value.Any()
}

// WithAttrs implements [slog.Handler].
func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	out := logHandler{group: h.group, attributes: append([]slog.Attr{}, h.attributes...)}
	for _, a := range attributes {
		a.Key = h.group + a.Key
		out.attributes = append(out.attributes, a)
	}
	return out
}

// WithGroup implements [slog.Handler].
func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return logHandler{group: h.group + name + ".", attributes: h.attributes}
}
