// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"regexp"
	"slices"
	"strings"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// Scheme says where a value is kept.
type Scheme string

// The schemes.
const (
	SchemeEnv    Scheme = "env"
	SchemeSecret Scheme = "secret"
	SchemeVault  Scheme = "vault"
)

// Reference is a parsed secret reference. It has one spelling, which [Parse]
// accepts and String returns.
type Reference struct {
	Scheme Scheme
	Name   string // of the variable (env) or of the secret (secret)
	Tenant string // secret only
	// Path is the mount and the secret's path in it, as `vault kv get` takes them
	// (vault only). A mount may have several segments: where it ends is asked of
	// Vault, see [Resolver].
	Path  string
	Field string // vault only
}

// String is the reference's spelling.
func (r Reference) String() string {
	switch r.Scheme {
	case SchemeEnv:
		return "env://" + r.Name
	case SchemeSecret:
		return "secret://" + r.Tenant + "/" + r.Name
	case SchemeVault:
		return "vault://" + r.Path + "#" + r.Field
	}
	return ""
}

var (
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`)
	tenantName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`) // the specification's tenant ids
	secretName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	// pathSegment and fieldName hold what RFC 3986 allows in a path or fragment
	// without percent-encoding, since Vault and its CLI don't decode any either.
	pathSegment = regexp.MustCompile(`^[A-Za-z0-9._~:@!$&'()*+,;=-]{1,128}$`)
	fieldName   = regexp.MustCompile(`^[A-Za-z0-9._~:@!$&'()*+,;=/?-]{1,128}$`)
)

// Parse reads a reference. What is wrong is INVALID_INPUT with reason secret; the
// message never repeats the text.
func Parse(text string) (Reference, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return Reference{}, malformed("It is not a secret reference.")
	}
	switch Scheme(scheme) {
	case SchemeEnv:
		if !envName.MatchString(rest) {
			return Reference{}, malformed("What follows env:// is not the name of an environment variable (letters, digits and underscores, not a digit first).")
		}
		return Reference{Scheme: SchemeEnv, Name: rest}, nil
	case SchemeSecret:
		return parseSecret(rest)
	case SchemeVault:
		return parseVault(rest)
	}
	return Reference{}, malformed("Its scheme is not env, secret or vault.")
}

func parseSecret(rest string) (Reference, error) {
	tenant, name, ok := strings.Cut(rest, "/")
	switch {
	case !ok:
		return Reference{}, malformed("What follows secret:// is a tenant, a slash and a name.")
	case !tenantName.MatchString(tenant):
		return Reference{}, malformed("The tenant after secret:// is 1 to 128 letters, digits and . _ : -.")
	case !secretName.MatchString(name):
		return Reference{}, malformed("The name in secret://tenant/name is 1 to 128 letters, digits and . _ -.")
	}
	return Reference{Scheme: SchemeSecret, Tenant: tenant, Name: name}, nil
}

func parseVault(rest string) (Reference, error) {
	path, field, ok := strings.Cut(rest, "#")
	if !ok || field == "" {
		return Reference{}, malformed("A vault:// reference names the field after a #.")
	}
	if !fieldName.MatchString(field) {
		return Reference{}, malformed("The field after the # of a vault:// reference has characters that it can't have, or more than 128 of them.")
	}
	segments := strings.Split(path, "/")
	if len(segments) < 2 {
		return Reference{}, malformed("What follows vault:// is a mount, a slash and the path of a secret.")
	}
	if strings.ContainsAny(segments[0], "@:") {
		return Reference{}, malformed("What follows vault:// is a mount, not a server or a login: Vault's address and token are set in the provider block or in VAULT_ADDR and VAULT_TOKEN.")
	}
	if slices.ContainsFunc(segments, badSegment) {
		return Reference{}, malformed("The path of a vault:// reference has an empty part, a . or .. part, or characters that it can't have.")
	}
	return Reference{Scheme: SchemeVault, Path: path, Field: field}, nil
}

// badSegment refuses dots too: an HTTP client would resolve them and read
// another secret than the one that is named.
func badSegment(s string) bool {
	return s == "." || s == ".." || !pathSegment.MatchString(s)
}

// malformed is the error of a text that is no reference. It takes no arguments:
// nothing of the text may get into it.
func malformed(problem string) *backends.Error {
	e := backends.Errorf(backends.InvalidInput, "The secret reference is malformed. %s", problem).
		WithRemedy("Write env://NAME, secret://tenant/name or vault://mount/path#field.")
	e.Reason = backends.ReasonSecret
	return e
}
