// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package emulator holds what the emulators of every cloud share: a log of
// calls, faults, added latency, a rate limit, separate projects, a state file,
// the control API that tests drive them with, and a transport that serves them
// without sockets.
//
// A cloud's emulator is a package of its own that implements [Backend] and
// [Service] and embeds a [Front]; the command's list of clouds names it in one
// line. Nothing in this package knows a vendor.
//
// Emulated time is the time package's: a service works out what has happened
// since the last call from time.Now when a call comes in, and nothing runs in
// the background. So a service also works inside a testing/synctest bubble,
// where hours pass in no time.
//
// What the control API and the fault kinds must do is fixed by the design of
// the project, section "Emulators".
package emulator
