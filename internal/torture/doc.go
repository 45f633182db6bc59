// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package torture holds tests that kill the built provider, and the CLI that drives
// it, at every call it makes to an emulated cloud, and that let several of them work
// on one cloud at once. What must hold afterwards is DESIGN.md §6: one clean apply
// leaves exactly the objects of the configuration, recorded as they are; a further
// plan is empty; a destroy leaves nothing.
//
// A schedule is one point and one death: after how many calls, before or after the
// last one had its effect, who dies, whether the state survives, and whether the pool
// adopts. Calls of resources that are worked on in parallel come in another order each
// time, so a schedule's number leads to about the same point, not to the very same.
//
// The tests need a CLI, as the acceptance tests do (CLI, TF_ACC=1), and a Unix system.
// They run a sample of the schedules, chosen by the number in TORTURE_SEED; make torture
// sets TORTURE to run them all. A violation prints the command that runs its schedule
// again.
package torture
