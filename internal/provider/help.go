// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// conflictHelp is what to paste when an object exists already. A provider never
// learns a resource's address, so it stands as a placeholder. adopting tells
// whether the pool has adopt = true, and differs what then kept the object from
// being taken over.
func conflictHelp(uri string, adopting bool, differs []backends.DigestField) string {
	var adopt string
	switch {
	case !adopting:
		adopt = "\n\nor set adopt = true on the pool, which takes over every such object that was made from the same inputs."
	case len(differs) > 0:
		var names []string
		for _, f := range differs {
			names = append(names, f.String())
		}
		adopt = fmt.Sprintf("\n\nThe pool has adopt = true, which takes over only what was made from the same inputs: make these match what the machine "+
			"was made from; nothing is taken until then: %s.", strings.Join(names, ", "))
	}
	return fmt.Sprintf(`Nothing was made, and the object was left alone: another state, or another block of this one, may own it.

If it belongs to this block and no state has it (a lost state), import it; put the block's address for the placeholder:

  import {
    to = bettercompute_instance.THIS
    id = %q
  }%s

If another block of this configuration has it, for instance one that was renamed, move it instead:

  moved {
    from = bettercompute_instance.OTHER
    to   = bettercompute_instance.THIS
  }

With create_before_destroy the old object still has the name: give the new one another name.`, escapeTemplate(uri), adopt)
}

// importHelp is what to paste to manage an object that nobody manages.
func importHelp(uri string) string {
	return fmt.Sprintf(`If this block is to manage that object, import it; put the block's address for the placeholder:

  import {
    to = bettercompute_instance.THIS
    id = %q
  }`, escapeTemplate(uri))
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
