// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package conformance holds the contract of [backends.Backend] as cases, and runs
// them against any backend: a live account, a recording or an emulator. It is the
// counterpart of the specification's providerConformanceCases.
//
// A case makes what it needs, looks, and says what is wrong as an error; the
// runner cleans up behind it, also after a failure, a panic or an interrupt.
// Machines, volumes and snapshots are made through internal/reconcile, as the
// provider makes them, so that what passes here is what users get; where the
// contract says something about one method, that method is called directly.
//
// What a cloud can't do is an ability that its backend doesn't have, and what it does
// otherwise (names that aren't unique, marks in names) is seen in its answers: no case
// asks which cloud it runs against.
//
// All names, pools and keys of a run derive from [Subject.Prefix], so runs at the
// same time on one account don't meet as long as their prefixes differ. A run
// touches only what carries a key of its own or what its own calls returned.
//
// Nothing here depends on package testing. The package cli is the subcommand
// "conformance", the package recording its -record and -replay.
package conformance
