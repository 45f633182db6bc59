// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

func duration(d emulator.Duration) time.Duration { return time.Duration(d) }

// power makes the handler of a call that turns a VM on or off as a task: of its
// own, or, for a VM that the HA manager has, as a request to that.
func power(kind, byHA string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.skipLock(); err != nil {
			return nil, err
		}
		g, err := c.guest()
		if err != nil {
			return nil, err
		}
		if (kind == "qmreset" || kind == "qmreboot") && !g.Running {
			return nil, died("VM %d not running", g.ID)
		}
		if g.HA != "" && byHA != "" {
			return c.begin(byHA, work{VMID: g.ID, Params: maps.Clone(c.params)})
		}
		if kind == "qmstop" && c.flag("overrule-shutdown") {
			c.overrule(g)
		}
		return c.begin(kind, work{VMID: g.ID, Params: maps.Clone(c.params)})
	}
}

// overrule ends the shutdowns of a VM that are still waiting for its guest.
func (c *call) overrule(g *guest) {
	for _, t := range c.p.Tasks {
		if !t.Done && t.Type == "qmshutdown" && t.Work.VMID == g.ID {
			c.p.finish(t, c.now, "received interrupt")
		}
	}
}

// haStep is a request to the HA manager: it ends at once, and what is asked for
// begins later, as the manager's own task.
func haStep(w *worker) error {
	g, err := w.guest()
	if err != nil {
		return err
	}
	kind, state := "qmstart", "started"
	switch w.t.Type {
	case "hastop":
		kind, state = "qmshutdown", "stopped"
		if w.t.Work.Params["timeout"] == "0" {
			kind = "qmstop"
		}
	case "hamigrate":
		kind, state = "qmigrate", g.HA
	}
	g.HA = state
	w.log("Requesting HA %s for VM %d", state, g.ID)
	if (kind == "qmstart") == g.Running && kind != "qmigrate" {
		return nil
	}
	params := map[string]string{"forceStop": "1", "target": w.t.Work.Params["target"], "online": "1"}
	w.p.begin(g.Node, kind, strconv.Itoa(g.ID), "root@pam", w.at.Add(w.s.options.Lag), work{VMID: g.ID, Params: params})
	return nil
}

// ready takes the lock of the task's VM and finds it unlocked.
func (w *worker) ready() (*guest, error) {
	if err := w.lock(w.t.Work.VMID, false, lockWait); err != nil {
		return nil, err
	}
	if w.t.Work.Fail != "" {
		return nil, errors.New(w.t.Work.Fail)
	}
	g, err := w.guest()
	if err != nil {
		return nil, err
	}
	return g, nil
}

// worker's view of a call's helpers: a call without a request.
func (w *worker) call(g *guest) *call {
	return &call{s: w.s, p: w.p, now: w.at, user: w.t.User, ids: map[string]string{"node": w.t.Node, "vmid": strconv.Itoa(g.ID)}}
}

func startStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	if w.t.Stage > 0 {
		w.run(g)
		return nil
	}
	if err := checkLock(g); err != nil {
		return err
	}
	switch {
	case g.isTemplate():
		return errors.New("you can't start a vm if it's a template")
	case g.Running:
		return fmt.Errorf("VM %d already running", g.ID)
	case w.t.Work.FailSpace:
		w.log("kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory")
		return errors.New("start failed: QEMU exited with code 1")
	}
	w.call(g).applyPending(g)
	if err := w.prepare(g); err != nil {
		return err
	}
	return w.then(w.s.options.TaskTime)
}

// run lets a VM run from now on.
func (w *worker) run(g *guest) {
	g.Running, g.Started = true, w.at
	g.writeDrive()
	g.boot()
	w.p.NextPID++
	g.PID = 0x4000 + w.p.NextPID
	if g.Lease == 0 {
		w.p.NextLease++
		g.Lease = w.p.NextLease
	}
}

// prepare does what comes before a VM runs. Why QEMU itself didn't start is in the
// task's log only.
func (w *worker) prepare(g *guest) error {
	if err := w.s.prepareCloudInit(w.p, g); err != nil {
		return err
	}
	for _, key := range netKeys(g.Config) {
		bridge := lookup(g.Config[key], "model", "bridge")
		if bridge != "" && !slices.Contains(w.s.options.Bridges, bridge) {
			w.log("bridge '%s' does not exist", bridge)
			return errors.New("start failed: QEMU exited with code 1")
		}
	}
	return nil
}

// prepareCloudInit reads the snippets that a VM's options name, as every start
// does.
func (s *Service) prepareCloudInit(p *cluster, g *guest) error {
	custom := g.option("cicustom")
	g.UserData = ""
	if custom == "" || !hasCloudInit(g.Config) {
		return nil
	}
	for _, part := range splitProperties(custom, "user") {
		text, found := s.snippet(p, g.Node, part.value)
		if !found {
			return fmt.Errorf("volume '%s' does not exist", part.value)
		}
		if len(text) > maxSnippet {
			return fmt.Errorf("cloud-init file '%s' is too big (> 1 MiB)", part.value)
		}
		if part.name == "user" {
			g.UserData = text
		}
	}
	return nil
}

// maxSnippet is the largest snippet that a start reads, in bytes.
const maxSnippet = 1 << 20

func stopStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	if w.t.Stage > 0 {
		g.Running = false
		return nil
	}
	if !g.Running {
		w.log("VM %d not running", g.ID)
		return nil
	}
	if err := checkLock(g); err != nil {
		return err
	}
	return w.then(w.s.options.TaskTime / 2)
}

// patience is how long a shutdown waits for the guest.
func (w *worker) patience() time.Duration {
	if text := w.t.Work.Params["timeout"]; text != "" {
		return w.s.options.scaled(time.Duration(atoi(text)) * time.Second)
	}
	return w.s.options.scaled(shutdownWait)
}

// halt is how long a guest takes to shut down; ok is false for one that doesn't
// within the patience there is. A VM with the option agent is asked through its
// agent only, and so is never shut down when it has none.
func (w *worker) halt(g *guest) (takes time.Duration, ok bool) {
	takes = w.s.options.TaskTime
	if w.s.options.IgnoreShutdown || (agentEnabled(g) && !g.Agent) {
		return 0, false
	}
	if agentEnabled(g) {
		takes += max(0, g.Started.Add(w.s.options.AgentDelay).Sub(w.at))
	}
	return takes, takes <= w.patience()
}

func shutdownStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	switch w.t.Stage {
	case 0:
		if !g.Running {
			w.log("VM %d not running", g.ID)
			return nil
		}
		if err := checkLock(g); err != nil {
			return err
		}
		takes, ok := w.halt(g)
		if !ok {
			takes = w.patience()
			w.t.Stage++ // the step after this is the one of a guest that didn't
		}
		return w.then(takes)
	case 2:
		if w.t.Work.Params["forceStop"] != "1" {
			return errors.New("VM quit/powerdown failed - got timeout")
		}
		w.log("VM still running - terminating now with SIGTERM")
	}
	g.Running = false
	return nil
}

func rebootStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	switch w.t.Stage {
	case 0:
		if err := checkLock(g); err != nil {
			return err
		}
		takes, ok := w.halt(g)
		if !ok {
			takes = w.patience()
			w.t.Stage++
		}
		return w.then(takes)
	case 2:
		return errors.New("VM quit/powerdown failed")
	}
	w.call(g).applyPending(g)
	if err := w.prepare(g); err != nil {
		g.Running = false
		return err
	}
	w.run(g)
	return nil
}

func resetStep(w *worker) error {
	g, err := w.ready()
	if err != nil {
		return err
	}
	if err := checkLock(g); err != nil {
		return err
	}
	g.Started = w.at
	g.boot()
	return nil
}

// regenerate writes the drive for cloud-init anew.
func regenerate(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := c.lockedFault(g.ID); err != nil {
		return nil, err
	}
	if err := c.lock(g); err != nil {
		return nil, err
	}
	if err := checkLock(g); err != nil {
		return nil, died("%s", err)
	}
	g.writeDrive()
	return nil, nil
}

// dumpCloudInit shows a file of the drive for cloud-init, in the plainest form.
func dumpCloudInit(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if custom := lookup(g.option("cicustom"), "user", c.params["type"]); custom != "" {
		text, found := c.s.snippet(c.p, g.Node, custom)
		if !found {
			return nil, died("volume '%s' does not exist", custom)
		}
		return text, nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#cloud-config\nhostname: %s\n", g.name())
	for _, name := range slices.Sorted(maps.Keys(g.Config)) {
		if isCloudInitOption(name) && name != "cipassword" {
			fmt.Fprintf(&text, "# %s: %s\n", name, g.Config[name])
		}
	}
	return text.String(), nil
}
