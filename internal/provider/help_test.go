// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
	"github.com/better-compute/terraform-provider-bettercompute/internal/reference"
)

func TestConflictHelpFitsThePool(t *testing.T) {
	const advice = "or set adopt = true"
	differs := []backends.DigestField{backends.DigestOffer, backends.DigestSSHKeys}
	for name, test := range map[string]struct {
		adopting bool
		differs  []backends.DigestField
		says     []string
		not      []string
	}{
		"not adopting":       {says: []string{advice}, not: []string{"make these match"}},
		"differs":            {adopting: true, differs: differs, says: []string{"make these match", "offer, ssh_keys"}, not: []string{advice}},
		"adopting, no field": {adopting: true, not: []string{advice, "make these match"}},
	} {
		ref := reference.Reference{Kind: reference.KindInstance, Cloud: "hetzner-cloud", Tenant: "root", Account: "main", Pool: "web", Instance: "web-0", MachineID: "7"}
		got := conflictHelp(ref, test.adopting, test.differs)
		for _, part := range append(test.says, "import {", "to = bettercompute_instance.THIS\n", "id = \"hetzner-cloud://root/main/web/instances/web-0/7\"", "from = bettercompute_instance.OTHER\n", "moved {", "create_before_destroy") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%s", name, part, got)
			}
		}
		for _, part := range append(test.not, "\n\n\n", "%!") {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q in\n%s", name, part, got)
			}
		}
	}
}

// A uri has neither sign unencoded; what else is pasted may have.
func TestNoTemplateIsReadIntoAText(t *testing.T) {
	if got := escapeTemplate("a${b}%{c}"); got != "a$${b}%%{c}" {
		t.Error(got)
	}
}
