// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

// Package emulate is the command "emulate": it serves the emulated clouds on
// loopback ports and prints what to paste to use them.
package emulate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

const about = `Usage: terraform-provider-bettercompute emulate [flags]

Serves emulated clouds on loopback ports until it is interrupted. Nothing
leaves this machine, nothing costs anything, and any token that isn't empty
works. The control API (GET and DELETE /calls, GET /objects, POST and DELETE
/faults) lets tests count calls and inject failures.

`

// Run serves the emulated clouds as the arguments say, until the context ends.
// Asking for help (-h) is no error; a bad flag is one, and stderr explains it.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("emulate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), about)
		flags.PrintDefaults()
	}
	addresses := map[string]*string{}
	for _, cloud := range clouds {
		addresses[cloud.Name] = flags.String(cloud.Name, cloud.Address,
			"loopback `address` of the emulated "+cloud.Title+"; port 0 is any free port")
	}
	control := flags.String("control", "127.0.0.1:8800", "loopback `address` of the control API")
	state := flags.String("state", "", "`file` that keeps the objects from one run to the next")
	settings := emulator.Settings{Projects: emulator.Projects{}}
	flags.DurationVar(&settings.Latency, "latency", 0, "`duration` added to every call, e.g. 50ms")
	flags.DurationVar(&settings.Boot, "boot", 2*time.Second, "`duration` a machine takes until it runs")
	flags.IntVar(&settings.RateLimit, "rate-limit", 0, "`calls` per hour and project; 0 is no limit")
	flags.Var(settings.Projects, "project", "`TOKEN=NAME`: let a token see a project of its own (repeatable); without any, all tokens see one project")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if err := check(flags, settings); err != nil {
		return err
	}

	where := emulator.Listening{Control: *control, Services: map[string]string{}}
	services := make([]emulator.Service, len(clouds))
	for i, cloud := range clouds {
		services[i] = cloud.New(settings)
		where.Services[cloud.Name] = *addresses[cloud.Name]
	}
	report := func(err error) { fmt.Fprintln(stderr, "emulate:", err) }
	e, err := emulator.New(*state, report, services...)
	if err != nil {
		return err
	}
	where.Ready = func(control string, bound map[string]string) { announce(stdout, control, bound) }
	return errors.Join(e.ListenAndServe(ctx, where), e.Save())
}

func check(flags *flag.FlagSet, settings emulator.Settings) error {
	var problems []error
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if settings.Latency < 0 {
		problems = append(problems, errors.New("-latency must not be negative"))
	}
	if settings.Boot < 0 {
		problems = append(problems, errors.New("-boot must not be negative"))
	}
	if settings.RateLimit < 0 {
		problems = append(problems, errors.New("-rate-limit must not be negative"))
	}
	return errors.Join(problems...)
}

// announce prints where everything is, with account attributes to paste.
func announce(stdout io.Writer, control string, bound map[string]string) {
	fmt.Fprintf(stdout, "Control API at http://%s (calls, objects, faults)\n", control)
	for _, cloud := range clouds {
		address := bound[cloud.Name]
		fmt.Fprintf(stdout, "\n%s at http://%s. In a bettercompute_provider_account:\n\n  %s\n\n%s\n",
			cloud.Title, address, cloud.Account(address), cloud.Needs)
	}
	fmt.Fprintln(stdout, "\nCtrl-C ends it.")
}
