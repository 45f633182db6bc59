// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

// conflictHelp is what to paste when an object exists already that ref names. A
// provider never learns a resource's address, so it stands as a placeholder.
// adopting tells whether the pool has adopt = true, and differs what then kept the
// object from being taken over.
func conflictHelp(ref reference.Reference, adopting bool, differs []backends.DigestField) string {
	var adopt string
	switch {
	case ref.Kind == reference.KindSnapshot && !adopting: // its volume's uri says nothing of the pool's adopt: see [providerData.adopting]
	case adopting && ref.Kind == reference.KindSnapshot && slices.Equal(differs, []backends.DigestField{backends.DigestVolume}):
		adopt = "\n\nThe pool has adopt = true, which doesn't take this one over: it is a snapshot of a volume that had the name before, and nothing can make that match. " +
			"Import it, or give the new snapshot another name."
	case !adopting:
		adopt = "\n\nor set adopt = true on the pool, which takes over every such object that was made from the same inputs."
	case len(differs) > 0:
		var names []string
		for _, f := range differs {
			names = append(names, f.String())
		}
		adopt = fmt.Sprintf("\n\nThe pool has adopt = true, which takes over only what was made from the same inputs: make these match what the %s "+
			"was made from; nothing is taken until then: %s.", nounOf(ref.Kind), strings.Join(names, ", "))
	}
	return fmt.Sprintf(`Nothing was made, and the object was left alone: another state, or another block of this one, may own it.

If it belongs to this block and no state has it (a lost state), import it; put the block's address for the placeholder:

  import {
    to = %[1]s.THIS
    id = %[2]q
  }%[3]s

If another block of this configuration has it, for instance one that was renamed, move it instead:

  moved {
    from = %[1]s.OTHER
    to   = %[1]s.THIS
  }

With create_before_destroy the old object still has the name: give the new one another name.`,
		ref.Kind.Resource(), escapeTemplate(ref.String()), adopt)
}

// importHelp is what to paste to manage an object that nobody manages.
func importHelp(ref reference.Reference) string {
	return fmt.Sprintf(`If this block is to manage that object, import it; put the block's address for the placeholder:

  import {
    to = %s.THIS
    id = %q
  }`, ref.Kind.Resource(), escapeTemplate(ref.String()))
}

// nounOf is what messages call the objects of a kind in the cloud.
func nounOf(kind reference.Kind) string {
	if kind == reference.KindInstance {
		return "machine"
	}
	return string(kind)
}

// removedHelp is the block that forgets a record without touching the cloud.
func removedHelp(resourceType string) string {
	return fmt.Sprintf(`To forget the record and leave the objects as they are, replace the resource by:

  removed {
    from = %s.THIS
    lifecycle {
      destroy = false
    }
  }`, resourceType)
}

// escapeTemplate keeps HCL from reading an interpolation into a text.
func escapeTemplate(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}
