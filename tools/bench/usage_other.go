// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build !unix

package main

import "os"

// usageOf is what an ended process needed; its memory isn't known here.
func usageOf(state *os.ProcessState) usage {
	return usage{CPU: state.UserTime() + state.SystemTime()}
}
