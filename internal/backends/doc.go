// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package backends is the contract between the provider and a cloud: the types
// both sides speak, the abilities a cloud may have, and the checks made when a
// cloud is registered. Nothing here knows Terraform, and nothing here knows a
// vendor.
//
// Data flows one way:
//
//	internal/provider → internal/reconcile → this contract → a backend → the vendor's client
//
// # Writing a backend
//
// A backend is one package under internal/backends and one line in
// internal/backends/registry. It supplies a [Definition]: an id, a version, a
// [Manifest] that declares its configuration, and a function that builds a
// [Backend] from that configuration without any I/O. The provider's schema,
// validation, documentation and the account's part of a uri come from the
// manifest.
//
// A [Backend] offers, finds, makes, gets, marks and deletes. Everything else is
// an optional ability, a small interface found by type assertion: [Finisher],
// [Lister], [Powerer], [Reinstaller], [UserDataReinstaller], [Protector], [Diagnoser]. What an
// account can do ([Capabilities]) follows from the interfaces its backend has; a
// request that needs an ability that is missing is UNSUPPORTED at plan time.
//
// A backend does one thing per method and decides nothing about ownership. The
// rules that keep a machine from being made twice or lost (look up, make, mark,
// adopt, conflict; DESIGN.md §6) are written once, in internal/reconcile, on top
// of this contract. A backend must therefore
//
//   - never retry a call that makes something: report the outcome, and set
//     [Error.Ambiguous] when the call may have been carried out;
//   - send every mark of [Marks] in the call that makes the object;
//   - keep labels and tags that are not ours whenever it writes;
//   - return [Error] with code NOT_FOUND, and only then, when the object is gone;
//   - resolve secrets per request (see [Authorize]), never once up front.
//
// internal/conformance holds these sentences as cases to run against any backend.
package backends
