// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package secrets parses secret references and resolves them to their values.
//
// An account's configuration never holds a credential, only a reference to one
// (the Better Compute specification, "Credentials first", DESIGN.md §5):
//
//	env://NAME                an environment variable of the provider's process
//	secret://tenant/name      a value of the provider block's `secrets`
//	vault://mount/path#field  a field of a secret in HashiCorp Vault, KV v1 or v2
//
// [Parse] knows the spelling, [Resolver] finds the value. A reference is resolved
// when a request needs it, never up front, so that a rotated credential is picked
// up. Messages name references, variables, paths and fields, never a value: what
// can't be parsed isn't repeated at all, since it may be the credential itself.
package secrets
