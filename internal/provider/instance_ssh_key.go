// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"golang.org/x/crypto/ssh"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// sshKeyLine accepts one authorized_keys line. Its error never repeats the value,
// and points nowhere when the value may be a private key, since CLIs print the
// lines that an error points at.
type sshKeyLine struct{}

func (sshKeyLine) remedyOf() string { return sshKeyRemedy }

const sshKeyRemedy = "Use one line of the form ssh-ed25519 AAAA… comment, such as the content of ~/.ssh/id_ed25519.pub. " +
	"Ids and names of keys kept in the cloud go into the cloud's own options, such as hetzner_cloud = { ssh_key_ids = [...] }."

// Description says what is accepted.
func (sshKeyLine) Description(context.Context) string {
	return "an OpenSSH public key line, such as ssh-ed25519 AAAA… name"
}

// MarkdownDescription is the same.
func (v sshKeyLine) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString checks one line.
func (sshKeyLine) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	line := strings.TrimSpace(req.ConfigValue.ValueString())
	if strings.Contains(line, "PRIVATE KEY") {
		report(&resp.Diagnostics, backends.Errorf(backends.InvalidInput, "An element of ssh_keys is a private key.").
			WithRemedy("Give the public key (the .pub file), and replace the private key if it was shared."))
		return
	}
	_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err == nil && len(rest) == 0 && !strings.ContainsAny(line, "\r\n") {
		return
	}
	remedy(sshKeyRemedy).reject(&resp.Diagnostics, req.Path, "Not an OpenSSH public key line.")
}
