// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"os"
	"strconv"
	"sync"
	"time"
)

// TimeScaleVariable names the environment variable that scales every wait of the
// provider's own: 0.01 makes a 60 s window 0.6 s. It is for tests and emulators;
// against a real cloud leave it unset.
const TimeScaleVariable = "BETTERCOMPUTE_TIME_SCALE"

var timeScale = sync.OnceValue(func() float64 {
	f, err := strconv.ParseFloat(os.Getenv(TimeScaleVariable), 64)
	if err != nil || f <= 0 || f > 100 {
		return 1
	}
	return f
})

// Scale multiplies a wait by the time scale.
func Scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) * timeScale())
}
