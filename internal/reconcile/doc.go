// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package reconcile turns wishes into machines by one set of rules for every
// cloud: look up, make, mark, adopt, conflict (DESIGN.md §6). It knows neither
// Terraform nor a vendor.
//
// Three facts shape it. A create may be carried out although no answer came, so
// nothing is made before its key was looked up. A process may die at any call, so
// what is half done must be visible in the cloud: an object carries its key and
// claim from the call that makes it, and a completion mark that is written last.
// And two states may name the same object, so each carries a claim, a random
// token that the state knows too: who finds another's claim leaves the object
// alone.
//
// All reads go through one coalescing reader per account, so that a thousand
// machines that are refreshed, waited for or looked up cost pages, not calls.
package reconcile
