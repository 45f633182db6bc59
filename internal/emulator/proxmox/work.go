// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// task is a worker of a node.
type task struct {
	UPID string `json:"upid"`
	Node string `json:"node"`
	Type string `json:"type"`
	// ID is what it is about, in most cases a VMID.
	ID     string    `json:"id"`
	User   string    `json:"user"` // with the token's name
	PID    uint32    `json:"pid"`
	PStart uint32    `json:"pstart"`
	Start  time.Time `json:"start"`
	// End and Exit are of one that is done.
	End      time.Time `json:"end"`
	Exit     string    `json:"exit"`
	Done     bool      `json:"done"`
	Log      []string  `json:"log"`
	Warnings int       `json:"warnings"`

	// What follows is how it goes on: at Due with step Stage, where it doesn't
	// get the lock it is Waiting for before Deadline.
	Due      time.Time `json:"due"`
	Stage    int       `json:"stage"`
	Waiting  string    `json:"waiting"`
	Deadline time.Time `json:"deadline"`
	Held     []held    `json:"held"`
	Work     work      `json:"work"`
}

// held is a lock that a task has.
type held struct {
	Key    string `json:"key"`
	Shared bool   `json:"shared"`
}

// work is what a task has to do.
type work struct {
	VMID   int               `json:"vmid"`
	Params map[string]string `json:"params"`
	// Fail is what it fails with, by a fault; FailLock that it gets no lock,
	// FailSpace that a storage has no room.
	Fail      string `json:"fail"`
	FailLock  bool   `json:"fail_lock"`
	FailSpace bool   `json:"fail_space"`
	// Hide is how long what it makes stays out of lists.
	Hide time.Duration `json:"hide"`
	// Drives are what a clone still has to copy, Volumes what it has made, and
	// Result the configuration that it makes.
	Drives  []string          `json:"drives"`
	Volumes []string          `json:"volumes"`
	Result  map[string]string `json:"result"`
	Agent   bool              `json:"agent"`
}

// worker is a task at one moment of its work.
type worker struct {
	s  *Service
	p  *cluster
	t  *task
	at time.Time
	// next is how long until the next step; negative: this was the last.
	next time.Duration
}

// steps are what the tasks do, by their types: each is called with the task's
// stage, and again as long as it asks for a next step.
var steps map[string]func(*worker) error

func init() {
	steps = map[string]func(*worker) error{
		"qmclone": cloneStep, "qmstart": startStep, "qmstop": stopStep, "qmshutdown": shutdownStep, "qmreset": resetStep,
		"qmreboot": rebootStep, "hastart": haStep, "hastop": haStep, "hamigrate": haStep, "qmdestroy": destroyStep, "resize": resizeStep,
		"qmconfig": doneStep, "qmtemplate": templateStep, "qmigrate": migrateStep, "imgdel": doneStep,
	}
}

// doneStep is that of tasks whose effect happened when they were asked for.
func doneStep(w *worker) error {
	if w.t.Work.Fail != "" {
		return errors.New(w.t.Work.Fail)
	}
	return nil
}

// blocked is the error of a step that has to wait for a lock.
type blocked struct{ key string }

func (b *blocked) Error() string { return "waiting for " + b.key }

// lockKey names the lock file of a VM, which is on one node.
func lockKey(node string, vmid int) string { return node + "/" + strconv.Itoa(vmid) }

// locked tells whether another than the task holds a lock, so that it can't be had
// (shared, or not).
func (p *cluster) locked(key string, shared bool, but *task) bool {
	for _, t := range p.Tasks {
		if t.Done || t == but {
			continue
		}
		if slices.ContainsFunc(t.Held, func(h held) bool { return h.Key == key && (!shared || !h.Shared) }) {
			return true
		}
	}
	return false
}

// lock takes the lock of a VM on the task's node, or waits for it so long. The
// task keeps it to its end.
func (w *worker) lock(vmid int, shared bool, wait time.Duration) error {
	t, key := w.t, lockKey(w.t.Node, vmid)
	if slices.Contains(t.Held, held{key, shared}) {
		return nil
	}
	if t.Waiting != key {
		t.Waiting, t.Deadline = key, w.at.Add(w.s.options.scaled(wait))
	}
	if !w.failsLock(vmid) && !w.p.locked(key, shared, t) {
		t.Held = append(t.Held, held{key, shared})
		t.Waiting = ""
		return nil
	}
	if w.at.Before(t.Deadline) {
		return &blocked{key}
	}
	return errors.New(lockTimeout(vmid))
}

// failsLock tells whether a fault keeps a lock from the task: of a clone that of the
// new VMID.
func (w *worker) failsLock(vmid int) bool {
	return w.t.Work.FailLock && (w.t.Type != "qmclone" || vmid == w.newID())
}

func (w *worker) log(format string, args ...any) {
	w.t.Log = append(w.t.Log, fmt.Sprintf(format, args...))
}

// warn is a line of the log that counts in the exit status.
func (w *worker) warn(format string, args ...any) {
	w.log("WARN: "+format, args...)
	w.t.Warnings++
}

// then asks for the next step after a time.
func (w *worker) then(d time.Duration) error {
	w.next = d
	return nil
}

// guest finds the task's VM, on its node.
func (w *worker) guest() (*guest, error) {
	g := w.p.VMs[w.t.Work.VMID]
	if g == nil || g.Node != w.t.Node || g.LXC {
		return nil, fmt.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", w.t.Node, w.t.Work.VMID) //nolint:staticcheck // the vendor's words
	}
	return g, nil
}

// checkLock reports the lock in a VM's configuration.
func checkLock(g *guest) error {
	if lock := g.option("lock"); lock != "" {
		return fmt.Errorf("VM is locked (%s)", lock)
	}
	return nil
}

// begin starts a task on a node, as a call's or (with another user) by itself.
func (p *cluster) begin(node, kind, id, user string, at time.Time, what work) *task {
	p.NextPID += 7
	t := &task{
		Node: node, Type: kind, ID: id, User: user, PID: 0x1ED0 + p.NextPID, PStart: 0x35693 + p.NextPID*101,
		Start: at, Due: at, Work: what,
	}
	t.UPID = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", node, t.PID, t.PStart, at.Unix(), kind, id, user)
	p.Tasks = append(p.Tasks, t)
	return t
}

// nextEvent is when a task next goes on by itself.
func (p *cluster) nextEvent() (at time.Time, any bool) {
	if t := p.nextTask(); t != nil {
		return t.Due, true
	}
	return time.Time{}, false
}

func (p *cluster) nextTask() *task {
	var first *task
	for _, t := range p.Tasks {
		if !t.Done && (first == nil || t.Due.Before(first.Due)) {
			first = t
		}
	}
	return first
}

// advance lets everything happen that was due until now, in its order.
func (s *Service) advance(p *cluster, now time.Time) {
	for {
		t := p.nextTask()
		if t == nil || t.Due.After(now) {
			break
		}
		at := t.Due
		s.step(p, t)
		p.publish(at, s.options.Lag)
	}
	p.publish(now, s.options.Lag)
}

// step lets a task do what is due.
func (s *Service) step(p *cluster, t *task) {
	w := &worker{s: s, p: p, t: t, at: t.Due, next: -1}
	err := steps[t.Type](w)
	var wait *blocked
	switch {
	case errors.As(err, &wait):
		t.Due = t.Deadline
	case err != nil:
		p.finish(t, w.at, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " "))
	case w.next >= 0:
		t.Stage++
		t.Due = w.at.Add(w.next)
	case t.Warnings > 0:
		p.finish(t, w.at, fmt.Sprintf("WARNINGS: %d", t.Warnings))
	default:
		p.finish(t, w.at, "OK")
	}
}

// finish ends a task, and lets those go on that wait for its locks.
func (p *cluster) finish(t *task, at time.Time, exit string) {
	t.Done, t.End, t.Exit = true, at, exit
	switch {
	case exit == "OK":
		t.Log = append(t.Log, "TASK OK")
	case strings.HasPrefix(exit, "WARNINGS: "):
		t.Log = append(t.Log, "TASK "+exit)
	case exit != unexpected:
		t.Log = append(t.Log, "TASK ERROR: "+exit)
	}
	for _, waiting := range p.Tasks {
		if !waiting.Done && waiting.Waiting != "" &&
			slices.ContainsFunc(t.Held, func(h held) bool { return h.Key == waiting.Waiting }) {
			waiting.Due = at
		}
	}
	t.Held = nil
	// What it had to do is of no use any more, and there may be many.
	t.Work = work{}
}

// unexpected is the exit status of a worker that ended without writing one.
const unexpected = "unexpected status"
