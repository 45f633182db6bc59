// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// deletingKey is the private state's key for whether a deletion was tried and its end
// was not seen. An object that the next refresh doesn't find is then gone as asked, not
// lost (DESIGN.md §5, "Lost data is loud"), and leaves the state. A refresh that still
// finds it takes the note away: from then on only someone else can delete it.
const deletingKey = "deleting"

type privateSetter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// noteDeleting notes how a deletion ended, for the next refresh.
func noteDeleting(ctx context.Context, private privateSetter, err error) diag.Diagnostics {
	if err == nil {
		return nil
	}
	return private.SetKey(ctx, deletingKey, []byte(`true`))
}

// wasDeleting tells whether a deletion was tried whose end was not seen.
func wasDeleting(ctx context.Context, private privateGetter) bool {
	raw, _ := private.GetKey(ctx, deletingKey)
	return string(raw) == `true`
}

// stillThere takes the note away.
func stillThere(ctx context.Context, seen privateGetter, private privateSetter) diag.Diagnostics {
	if !wasDeleting(ctx, seen) {
		return nil
	}
	return private.SetKey(ctx, deletingKey, []byte(`false`))
}
