// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package flagvalue holds values of command line flags that say what they want
// when they are given something else. The flag package's own say "parse error".
package flagvalue

import (
	"errors"
	"strconv"
	"time"
)

// Duration is a [flag.Value] of a duration in Go's form, such as 90s or 1m30s. It
// is never negative.
type Duration time.Duration

// String implements [flag.Value].
func (d *Duration) String() string { return time.Duration(*d).String() }

// Set implements [flag.Value].
func (d *Duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return errors.New("a duration needs its unit; say " + text + "s for seconds")
		}
		return errors.New("say a duration such as 5s, 200ms or 1m30s")
	}
	if parsed < 0 {
		return errors.New("must not be negative")
	}
	*d = Duration(parsed)
	return nil
}

// Count is a [flag.Value] of a whole number, 0 or more.
type Count int

// String implements [flag.Value].
func (c *Count) String() string { return strconv.Itoa(int(*c)) }

// Set implements [flag.Value].
func (c *Count) Set(text string) error {
	parsed, err := strconv.Atoi(text)
	if err != nil || parsed < 0 {
		return errors.New("say a whole number, 0 or more")
	}
	*c = Count(parsed)
	return nil
}
