// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package flagvalue_test

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/flagvalue"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		args string
		boot time.Duration
		rate int
		want string // part of the error
	}{
		{"-boot 1m30s -rate 5", 90 * time.Second, 5, ""},
		{"-boot 0 -rate 0", 0, 0, ""},
		{"-boot 5", 0, 0, "say 5s for seconds"},
		{"-boot 2.5", 0, 0, "say 2.5s for seconds"},
		{"-boot soon", 0, 0, "a duration such as 5s"},
		{"-boot -1s", 0, 0, "must not be negative"},
		{"-rate many", 0, 0, "a whole number, 0 or more"},
		{"-rate -1", 0, 0, "a whole number, 0 or more"},
		{"-rate 1.5", 0, 0, "a whole number, 0 or more"},
	} {
		var boot time.Duration
		var rate int
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.Var((*flagvalue.Duration)(&boot), "boot", "")
		flags.Var((*flagvalue.Count)(&rate), "rate", "")
		err := flags.Parse(strings.Fields(c.args))
		switch {
		case c.want == "" && (err != nil || boot != c.boot || rate != c.rate):
			t.Errorf("%s: %v, %d, %v", c.args, boot, rate, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "parse error")):
			t.Errorf("%s: %v; want %q", c.args, err, c.want)
		}
	}
}

func TestDefaultsAreShown(t *testing.T) {
	boot, rate := 2*time.Second, 0
	var out bytes.Buffer
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(&out)
	flags.Var((*flagvalue.Duration)(&boot), "boot", "`duration` of a boot")
	flags.Var((*flagvalue.Count)(&rate), "rate", "`calls` per hour")
	flags.PrintDefaults()
	if got := out.String(); !strings.Contains(got, "-boot duration\n") || !strings.Contains(got, "(default 2s)") || !strings.Contains(got, "-rate calls\n") || strings.Count(got, "default") != 1 {
		t.Errorf("got %s", got)
	}
}
