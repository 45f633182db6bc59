// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// usageOf is what an ended process needed.
func usageOf(state *os.ProcessState) usage {
	u := usage{CPU: state.UserTime() + state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.Memory = int64(r.Maxrss) //nolint:unconvert // it is an int32 where words have 32 bits
		if runtime.GOOS != "darwin" && runtime.GOOS != "ios" {
			u.Memory <<= 10 // the others count in KiB
		}
	}
	return u
}
