// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build !race

package provider_test

const (
	raceDetector = false
	// sampleOf is of how many schedules [TestFaultMatrix] plays one, and randomSample how
	// many [TestRandomFaults] plays on a cloud, without [tortureVariable].
	sampleOf     = 90
	randomSample = 20
)
