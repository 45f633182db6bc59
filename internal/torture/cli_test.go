// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

//go:build unix

package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// pluginName is the name under which the CLIs look for the provider.
	pluginName = "terraform-provider-bettercompute"
	// timeScale makes the provider's windows short, as boot makes machines quick.
	timeScale = "0.02"
	// patience is how long a command may take, on a machine that is busy: nothing here
	// waits for longer than seconds.
	patience = 3 * time.Minute
)

// workspace is a folder with a configuration and a state, in which the CLI is run.
type workspace struct {
	*world
	folder, pids string
	environment  []string
}

// workspace makes a folder whose configuration leads to the cloud.
func (w *world) workspace(t *testing.T, machines int, adopt bool) *workspace {
	t.Helper()
	folder := t.TempDir()
	s := &workspace{world: w, folder: folder, pids: filepath.Join(folder, "pids")}
	plugins := filepath.Join(folder, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	// It writes down its number, which the provider then has.
	wrapper := fmt.Sprintf("#!/bin/sh\necho $$ >>'%s'\nexec '%s' \"$@\"\n", s.pids, binary)
	if err := os.WriteFile(filepath.Join(plugins, pluginName), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(folder, "cli.tfrc")
	s.write(t, "cli.tfrc", fmt.Sprintf(`disable_checkpoint = true

provider_installation {
  dev_overrides {
    "registry.opentofu.org/better-compute/bettercompute"  = %[1]q
    "registry.terraform.io/better-compute/bettercompute" = %[1]q
  }
}
`, plugins))
	s.write(t, "main.tf", w.configuration(machines, adopt))
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TF_") && !strings.HasPrefix(entry, "BETTERCOMPUTE_") {
			s.environment = append(s.environment, entry)
		}
	}
	s.environment = append(s.environment, "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"BETTERCOMPUTE_TIME_SCALE="+timeScale, w.TokenVariable+"="+w.token())
	return s
}

func (s *workspace) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// process is a command of the CLI that runs.
type process struct {
	*workspace
	cmd *exec.Cmd
	// interrupted is closed when the CLI says that it heard of an interrupt.
	interrupted chan struct{}
	// ended is closed when it has ended.
	ended  chan struct{}
	err    error
	output output
}

// output keeps what the CLI prints, and tells when it says a text.
type output struct {
	mu     sync.Mutex
	text   bytes.Buffer
	awaits string
	said   chan struct{}
}

// Write keeps a piece of the output.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(data)
	if o.awaits != "" && bytes.Contains(o.text.Bytes(), []byte(o.awaits)) {
		o.awaits = ""
		close(o.said)
	}
	return len(data), nil
}

// start runs a command of the CLI in a group of processes of its own, to which the
// provider belongs too.
func (s *workspace) start(t *testing.T, command string, arguments ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	p := &process{workspace: s, ended: make(chan struct{}), interrupted: make(chan struct{})}
	p.output.awaits, p.output.said = "Interrupt received", p.interrupted
	p.cmd = exec.CommandContext(ctx, cli, append([]string{command, "-json"}, arguments...)...)
	p.cmd.Dir, p.cmd.Env = s.folder, s.environment
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 10 * time.Second
	if err := os.RemoveAll(s.pids); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		if cause := context.Cause(ctx); cause != nil {
			p.err = cause
		}
		close(p.ended)
	}()
	go func() {
		// Ticks that the whole machine, or this process, slept through don't count.
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for waited := time.Duration(0); waited < patience; waited += time.Second {
			select {
			case <-tick.C:
			case <-p.ended:
				return
			}
		}
		cancel(fmt.Errorf("it did not end within %s", patience))
	}()
	t.Cleanup(func() {
		cancel(context.Canceled)
		<-p.ended
		if err := p.killAll(); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error("what the CLI left can't be killed: ", err)
		}
	})
	return p
}

// killAll kills the CLI and its providers.
func (p *process) killAll() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// killCLI kills the CLI alone, as a system does that is short of memory. Its providers
// live on: what they have begun they may end, beside the next run. They die with the
// test.
func (p *process) killCLI() error { return p.cmd.Process.Kill() }

// killProvider kills the provider alone: those of the numbers written down that still
// belong to the CLI's group.
func (p *process) killProvider() error {
	numbers, err := os.ReadFile(p.pids)
	if err != nil {
		return err
	}
	killed := false
	for number := range strings.FieldsSeq(string(numbers)) {
		pid, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		if group, err := syscall.Getpgid(pid); err == nil && group == p.cmd.Process.Pid {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return err
			}
			killed = true
		}
	}
	if !killed {
		return errors.New("no provider runs")
	}
	return nil
}

// interrupt asks the CLI to end, as a job that is cancelled does.
func (p *process) interrupt() error { return p.cmd.Process.Signal(syscall.SIGINT) }

// result is what a command came to.
type result struct {
	code int
	// diagnostics are all but the warning that the provider isn't an installed one.
	diagnostics []diagnostic
	err         error // what isn't an exit code
	text        string
}

// diagnostic is one that the CLI prints.
type diagnostic struct{ Severity, Summary, Detail, Address string }

// String is the diagnostic on few lines.
func (d diagnostic) String() string {
	return fmt.Sprintf("%s at %s: %s\n%s", d.Severity, d.Address, d.Summary, d.Detail)
}

// wait waits for the end. Neither what was printed nor the state may have the secret,
// whatever happened.
func (p *process) wait(t *testing.T) result {
	t.Helper()
	<-p.ended
	r := result{err: p.err, code: -1, text: p.output.text.String()}
	if _, ok := errors.AsType[*exec.ExitError](p.err); ok {
		r.err = nil
	}
	if r.err == nil {
		r.code = p.cmd.ProcessState.ExitCode()
	}
	state, err := os.ReadFile(filepath.Join(p.folder, stateFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if strings.Contains(r.text, secret) || bytes.Contains(state, []byte(secret)) {
		t.Error("the output or the state has the secret")
	}
	for line := range strings.Lines(r.text) {
		var entry struct{ Diagnostic *diagnostic }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Diagnostic != nil &&
			!strings.Contains(entry.Diagnostic.Summary, "development overrides") {
			r.diagnostics = append(r.diagnostics, *entry.Diagnostic)
		}
	}
	return r
}

// problem is what is wrong with a command that should have ended well and said
// nothing; "" for nothing.
func (r result) problem(code int) string {
	const shown = 3000
	end := r.text[max(0, len(r.text)-shown):]
	if r.err != nil {
		return r.err.Error() + "\n" + end
	}
	if r.code == code {
		return ""
	}
	if len(r.diagnostics) == 0 {
		return fmt.Sprintf("exit code %d\n%s", r.code, end)
	}
	return fmt.Sprintf("exit code %d\n%s", r.code, r.said())
}

// said are the diagnostics as text.
func (r result) said() string {
	var parts []string
	for _, d := range r.diagnostics {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "\n---\n")
}

// run runs a command to its end.
func (s *workspace) run(t *testing.T, command string, arguments ...string) result {
	t.Helper()
	r := s.start(t, command, arguments...).wait(t)
	for _, bad := range []string{"panic:", "goroutine 1", "inconsistent result", "invalid plan", "bug in the provider"} {
		if strings.Contains(r.text, bad) {
			t.Errorf("%s %s: %q in\n%s", command, strings.Join(arguments, " "), bad, r.text)
		}
	}
	return r
}

func (s *workspace) apply(t *testing.T) result { t.Helper(); return s.run(t, "apply", "-auto-approve") }
func (s *workspace) destroy(t *testing.T) result {
	t.Helper()
	return s.run(t, "destroy", "-auto-approve")
}
