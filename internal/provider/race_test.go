// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build race

package provider_test

// With the race detector, which makes it many times slower, only a part is played of
// what needs no CLI; `make test` plays it without as well.
const (
	raceDetector = true
	sampleOf     = 900
	randomSample = 2
)
