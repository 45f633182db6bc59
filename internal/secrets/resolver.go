// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package secrets

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// DefaultTenant is the tenant of a provider block that names none.
const DefaultTenant = "root"

// Config is what the provider block says about secrets. The zero value works:
// env:// always does, vault:// by Vault's environment variables.
type Config struct {
	TenantID string // the tenant of keys without one; "" is [DefaultTenant]
	// Values are the provider block's `secrets`. A key is `name` (of TenantID),
	// `tenant/name`, or a full reference, which it then overrides: the way out when
	// an old name is gone (DESIGN.md §4).
	Values map[string]string
	// UnknownKeys are keys of `secrets` whose values a plan doesn't know yet.
	UnknownKeys []string
	// UnknownValues: the whole of `secrets` isn't known yet. Then nothing resolves,
	// env:// included, since a key not yet known may override it, and a plan that
	// reads with the wrong account's credential would take its objects for gone.
	UnknownValues bool
	Vault         VaultConfig
}

// VaultConfig is the provider block's `vault`. What is empty comes from Vault's
// own environment variables: VAULT_ADDR, VAULT_TOKEN, VAULT_NAMESPACE,
// VAULT_CACERT and the others that its clients read.
type VaultConfig struct {
	Address   string
	Namespace string
	Token     string
	// Unknown: a part of the block isn't known yet, so no vault:// resolves.
	Unknown bool
	// Transport carries the requests; nil is the one of Vault's client, which
	// follows VAULT_CACERT and its like.
	Transport http.RoundTripper
}

// Resolver finds the values behind references. It implements
// [backends.Secrets], makes no call until a vault:// reference is resolved, and
// is safe for concurrent use.
type Resolver struct {
	// values and unknown are keyed by a reference's spelling.
	values        map[string]string
	unknown       map[string]bool
	unknownValues bool
	vault         *vaultReader
}

var _ backends.Secrets = (*Resolver)(nil)

// New checks the keys of `secrets` and builds a resolver. Every key that is wrong
// is one INVALID_CONFIG without a path: the CLIs print the source lines of an
// error that points at `secrets` (DESIGN.md §5). A malformed key isn't repeated.
func New(config Config) (*Resolver, []*backends.Error) {
	tenant := cmp.Or(config.TenantID, DefaultTenant)
	r := &Resolver{
		values:        make(map[string]string, len(config.Values)),
		unknown:       make(map[string]bool, len(config.UnknownKeys)),
		unknownValues: config.UnknownValues,
		vault:         newVaultReader(config.Vault),
	}
	var issues []*backends.Error
	seen := map[string]bool{}
	keys := slices.Sorted(maps.Keys(config.Values))
	for _, key := range slices.Concat(keys, slices.Sorted(slices.Values(config.UnknownKeys))) {
		ref, ok := keyReference(key, tenant)
		if !ok {
			issues = append(issues, failure("A key of the provider block's secrets is malformed.").
				WithRemedy("A key is a name (letters, digits and . _ -), tenant/name, or a full reference such as env://NAME."))
			continue
		}
		if seen[ref] {
			issues = append(issues, failure("Two keys of the provider block's secrets mean %s.", ref).
				WithRemedy("Keep one of them."))
			continue
		}
		seen[ref] = true
		if value, known := config.Values[key]; known {
			r.values[ref] = value
		} else {
			r.unknown[ref] = true
		}
	}
	return r, issues
}

// keyReference is the reference that a key of `secrets` stands for.
func keyReference(key, tenant string) (string, bool) {
	text := key
	switch {
	case strings.Contains(key, "://"):
	case strings.Contains(key, "/"):
		text = "secret://" + key
	default:
		text = "secret://" + tenant + "/" + key
	}
	ref, err := Parse(text)
	return ref.String(), err == nil
}

// Resolve is the value behind a reference. Every failure but the end of ctx is an
// [backends.Error] with code INVALID_CONFIG and reason secret; one that may pass
// by itself (a Vault that doesn't answer) is Retryable.
func (r *Resolver) Resolve(ctx context.Context, reference string) (string, error) {
	ref, err := Parse(reference)
	if err != nil {
		e := *backends.AsError(err)
		e.Code = backends.InvalidConfig
		return "", &e
	}
	name := ref.String()
	if value, ok := r.values[name]; ok {
		if _, err := Parse(value); err == nil {
			return "", failure("The provider block's secrets hold a reference, not a value, for %s.", name).
				WithRemedy("Put the value itself there, from a sensitive variable or an ephemeral resource, or name the other reference in the account.")
		}
		return usable(ref, value)
	}
	if r.unknownValues || r.unknown[name] || (ref.Scheme == SchemeVault && r.vault.config.Unknown) {
		return "", failure("%s can't be resolved yet: the provider block holds values that are not known before apply.", name).
			WithRemedy("Nothing needs doing if the apply makes them. Else give the provider block values that a plan knows.")
	}
	switch ref.Scheme {
	case SchemeEnv:
		value, set := os.LookupEnv(ref.Name)
		if value == "" {
			state := "not set"
			if set {
				state = "empty"
			}
			return "", failure("%s can't be resolved: the environment variable %s is %s.", name, ref.Name, state).
				WithRemedy("Export %s where tofu or terraform runs, or give its value in the provider block: secrets = { %q = var.token }.", ref.Name, name)
		}
		return usable(ref, value)
	case SchemeVault:
		value, err := r.vault.read(ctx, ref)
		if err != nil {
			return "", err
		}
		return usable(ref, value)
	default:
		key := ref.Tenant + "/" + ref.Name
		return "", failure("%s can't be resolved: the provider block's secrets have no %q.", name, key).
			WithRemedy("Add it: provider \"bettercompute\" { secrets = { %q = var.token } }, and keep that block for as long as the account exists: the value is recorded nowhere.", key)
	}
}

// Forget drops what is remembered of a reference, so that the next Resolve asks
// again. Only answers of Vault are ever remembered.
func (r *Resolver) Forget(reference string) {
	if ref, err := Parse(reference); err == nil && ref.Scheme == SchemeVault {
		r.vault.forget(ref.Path)
	}
}

// usable makes a stored value one that can be sent. One newline at the end is
// dropped, since files and editors put it there. Other control characters are
// refused: no header can hold them. Text in PEM form (a private key, a
// certificate) has lines, isn't sent in a header, and passes as it is.
func usable(ref Reference, value string) (string, error) {
	if strings.HasPrefix(value, "-----BEGIN ") {
		if strings.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && !strings.ContainsRune("\r\n\t", c) }) {
			return "", failure("The value of %s has control characters in it.", ref).WithRemedy("Store it again, as text.")
		}
		return value, nil
	}
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	switch {
	case value == "":
		return "", failure("The value of %s is empty.", ref).WithRemedy("Store the credential under that name.")
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", failure("The value of %s has a line break or another control character in it, which no request can carry.", ref).
			WithRemedy("Store the credential alone, on one line.")
	}
	return value, nil
}

// failure is the error of a reference that can't be resolved.
func failure(format string, args ...any) *backends.Error {
	e := backends.Errorf(backends.InvalidConfig, format, args...)
	e.Reason = backends.ReasonSecret
	return e
}
