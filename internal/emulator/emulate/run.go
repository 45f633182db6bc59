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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/flagvalue"
)

// defaultBoot is long enough to be seen and short enough to be waited for.
const defaultBoot = 2 * time.Second

const about = `Usage: terraform-provider-bettercompute emulate [flags]

Serves emulated clouds on loopback ports until it is interrupted. Nothing
leaves this machine, nothing costs anything, and without -project any token
that isn't empty works (for Proxmox VE, one such as root@pam!name=anything). The
control API (GET and DELETE /calls, GET /objects, POST and DELETE /faults) lets
tests count calls and inject failures.

`

// ErrUsage is what [Run]'s error is (errors.Is) when the command line is wrong:
// for a process, exit status 2.
var ErrUsage = errors.New("emulate -h lists the flags")

// usageError is a wrong command line. Its text is one line per mistake, and one
// that says where help is.
func usageError(problems ...error) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.Join(append(problems, ErrUsage)...)
}

// options is the command line.
type options struct {
	addresses map[string]*string // by the clouds' names
	makers    map[string]func(emulator.Settings) (emulator.Service, error)
	control   string
	state     string
	settings  emulator.Settings
	projects  projectFlag
}

// projectFlag adds projects, and keeps what is wrong with one: returned to the flag
// package, it would come with the value, which may be a token.
type projectFlag struct {
	emulator.Projects
	err error
}

// Set implements [flag.Value].
func (p *projectFlag) Set(text string) error {
	p.err = errors.Join(p.err, p.Projects.Set(text))
	return nil
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("emulate", flag.ContinueOnError)
	// What is wrong is returned, and printed once, by the caller.
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	o.addresses = map[string]*string{}
	o.makers = map[string]func(emulator.Settings) (emulator.Service, error){}
	for _, cloud := range clouds {
		o.addresses[cloud.Name] = flags.String(cloud.Name, cloud.Address,
			"loopback `address` of the emulated "+cloud.Title+"; port 0 is any free port")
		o.makers[cloud.Name] = cloud.Maker(flags)
	}
	flags.StringVar(&o.control, "control", "127.0.0.1:8800", "loopback `address` of the control API")
	flags.StringVar(&o.state, "state", "", "`file` that keeps the objects from one run to the next")
	o.settings = emulator.Settings{Boot: defaultBoot, SnapshotInterval: defaultSnapshotInterval, Projects: emulator.Projects{}}
	flags.Var((*flagvalue.Duration)(&o.settings.Latency), "latency", "`duration` added to every call, e.g. 50ms")
	flags.Var((*flagvalue.Duration)(&o.settings.Boot), "boot", "`duration` a machine takes until it runs")
	flags.Var((*flagvalue.Count)(&o.settings.RateLimit), "rate-limit", "`calls` per hour and project; 0 is no limit")
	flags.Var((*flagvalue.Duration)(&o.settings.SnapshotInterval), "snapshot-interval",
		"least `duration` between two snapshots of a volume, where the cloud has such a limit; 0 is none")
	o.projects.Projects = o.settings.Projects
	flags.Var(&o.projects, "project", "`TOKEN=NAME`: let a token see a project of its own, and refuse tokens that are not named (repeatable); without any, all tokens see one project")
	return flags
}

// Run serves the emulated clouds as the arguments say, until the context ends.
// Asking for help (-h) is no error, and stderr gets it. A wrong command line is
// [ErrUsage].
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := o.flags()
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, about)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return nil
	} else if err != nil {
		return usageError(err)
	}
	if err := usageError(o.problems(flags)...); err != nil {
		return err
	}

	where := emulator.Listening{Control: o.control, Services: map[string]string{}}
	services := make([]emulator.Service, len(clouds))
	for i, cloud := range clouds {
		var err error
		if services[i], err = o.makers[cloud.Name](o.settings); err != nil {
			return fmt.Errorf("%s: %w", cloud.Name, err)
		}
		where.Services[cloud.Name] = *o.addresses[cloud.Name]
	}
	report := func(err error) { fmt.Fprintln(stderr, "emulate:", err) }
	e, err := emulator.New(o.state, report, services...)
	if err != nil {
		return err
	}
	// A place that can't be written shows now, not after the first machine.
	if err := e.Save(); err != nil {
		return fmt.Errorf("-state %s: %w", o.state, err)
	}
	where.Ready = func(control string, bound map[string]string) { o.announce(stdout, services, control, bound) }
	return errors.Join(e.ListenAndServe(ctx, where), e.Save())
}

// problems is what is wrong with values that are well-formed.
func (o *options) problems(flags *flag.FlagSet) []error {
	var problems []error
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	for _, cloud := range clouds {
		if err := emulator.CheckLoopback(*o.addresses[cloud.Name]); err != nil {
			problems = append(problems, fmt.Errorf("-%s: %w", cloud.Name, err))
		}
	}
	if o.projects.err != nil {
		problems = append(problems, fmt.Errorf("-project: %w", o.projects.err))
	}
	if err := emulator.CheckLoopback(o.control); err != nil {
		problems = append(problems, fmt.Errorf("-control: %w", err))
	}
	return problems
}

// announce prints where everything is, with account attributes to paste.
func (o *options) announce(stdout io.Writer, services []emulator.Service, control string, bound map[string]string) {
	fmt.Fprintf(stdout, "Control API at http://%s (calls, objects, faults)\n", control)
	for i, cloud := range clouds {
		address := bound[cloud.Name]
		fmt.Fprintf(stdout, "\n%s at %s. In a bettercompute_provider_account:\n\n%s\n\n%s\n",
			cloud.Title, emulator.URL(services[i], address), indent(cloud.Account(services[i], address)), o.needs(cloud))
	}
	fmt.Fprintln(stdout, "\nCtrl-C ends it.")
}

// needs says what the variable of the token must hold: any value, or one of the
// tokens of -project, which are not printed.
func (o *options) needs(cloud emulator.Cloud) string {
	if len(o.settings.Projects) == 0 {
		if cloud.Token != "" {
			return fmt.Sprintf("Any token of that form will do: export %s=%s", cloud.TokenVariable, cloud.Token)
		}
		return fmt.Sprintf("Any token will do: export %s=anything", cloud.TokenVariable)
	}
	names := slices.Compact(slices.Sorted(maps.Values(o.settings.Projects)))
	return fmt.Sprintf("%s must hold a token that was given with -project (projects: %s); others are refused.\n"+
		"For accounts in several projects export each token under a name of its own, and give each account its env://NAME.",
		cloud.TokenVariable, strings.Join(names, ", "))
}

// indent moves lines to where a resource's attributes stand.
func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
