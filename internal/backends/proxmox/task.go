// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// upidForm is that of a task's id: its node, worker, type and VMID.
var upidForm = regexp.MustCompile(`^UPID:([a-zA-Z0-9-]+):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:([^:\s]+):([^:\s]*):[^:\s]+:$`)

// upid is a task.
type upid struct{ text, node, kind string }

func parseUPID(text string) (upid, bool) {
	found := upidForm.FindStringSubmatch(text)
	if found == nil {
		return upid{}, false
	}
	return upid{text, found[1], found[2]}, true
}

// byHA tells whether the task only asked the HA manager, which acts later.
func (u upid) byHA() bool { return strings.HasPrefix(u.kind, "ha") }

// begin sends a call that begins a task.
func (c *Client) begin(ctx context.Context, kind backends.Call, what string, r request) (upid, error) {
	text, err := call(ctx, c, kind, what, r, func(s string) bool { _, ok := parseUPID(s); return ok })
	if err != nil {
		return upid{}, err
	}
	u, _ := parseUPID(text)
	return u, nil
}

// taskRow is a task in its node's list.
type taskRow struct {
	UPID    string `json:"upid"`
	Status  scalar `json:"status"` // the exit status of one that has ended
	EndTime scalar `json:"endtime"`
}

// tasksListed is how many of a node's newest tasks are read at once.
const tasksListed = 200

// fetchTasks reads a node's newest tasks: one call for all that wait for one of them.
func (c *Client) fetchTasks(ctx context.Context, node string) (map[string]taskRow, error) {
	rows, err := call(ctx, c, backends.Idempotent, "Reading the tasks of the node "+node,
		request{http.MethodGet, at("nodes", node, "tasks"), url.Values{"source": {"all"}, "limit": {fmt.Sprint(tasksListed)}}},
		func(rows []taskRow) bool { return rows != nil })
	if err != nil {
		return nil, err
	}
	out := make(map[string]taskRow, len(rows))
	for _, r := range rows {
		if known, ok := out[r.UPID]; !ok || known.EndTime == "" {
			out[r.UPID] = r
		}
	}
	return out, nil
}

// exitOf is a task's exit status, "" while it runs.
func (c *Client) exitOf(ctx context.Context, what string, u upid) (string, error) {
	rows, err := c.tasks.Get(ctx, u.node)
	if err != nil && !isNodeDown(err) && statusOf(err) == 0 {
		return "", err
	}
	if row, ok := rows[u.text]; ok && err == nil {
		if row.EndTime == "" {
			return "", nil
		}
		return string(row.Status), nil
	}
	// It may have left the list, or not be in it yet.
	type status struct {
		Status string `json:"status"`
		Exit   string `json:"exitstatus"`
	}
	s, err := call(ctx, c, backends.Idempotent, what, request{http.MethodGet, at("nodes", u.node, "tasks", u.text, "status"), nil},
		func(s status) bool { return s.Status != "" })
	switch {
	case err != nil:
		return "", err
	case s.Status != "stopped":
		return "", nil
	case s.Exit == "":
		return unexpected, nil
	}
	return s.Exit, nil
}

// unexpected is the exit status of a task whose end nobody wrote down: its node
// crashed.
const unexpected = "unexpected status"

var warningsForm = regexp.MustCompile(`^WARNINGS: \d+$`)

// longestTaskPoll bounds the growing pause between two looks, as a multiple of the
// account's task_poll.
const longestTaskPoll = 5

// pause waits before something is looked at once more: n counts from 0.
func (c *Client) pause(ctx context.Context, n int) error {
	d := min(c.account.poll*time.Duration(2+n)/4, longestTaskPoll*c.account.poll)
	return backends.Sleep(backends.Caller(ctx), backends.Scale(d))
}

// await waits until a task has ended, at most as long as the account lets one. Its
// failure is an error whose details hold the exit status, and whose text ends with
// what the task's log last said.
func (c *Client) await(ctx context.Context, what string, u upid) error {
	ends := time.Now().Add(c.account.timeout) // a bound that the user chose, not a wait of ours: never scaled
	lost := 0
	for n := 0; ; n++ {
		if err := c.pause(ctx, n); err != nil {
			return err
		}
		exit, err := c.exitOf(ctx, what, u)
		switch {
		case err != nil && (isNodeDown(err) || statusOf(err) == http.StatusBadRequest) && lost < maxLost:
			// The node may be back in a moment, and a new task isn't known at once.
			lost++
		case err != nil:
			e := backends.AsError(err)
			if e == nil {
				return err
			}
			unknown := *e
			unknown.Ambiguous = true
			return &unknown
		case exit == "OK":
			return nil
		case warningsForm.MatchString(exit):
			backends.Warn(ctx, fmt.Sprintf("%s succeeded with %s.%s", what, strings.ToLower(exit), c.lastLines(ctx, u)))
			return nil
		case exit != "":
			return c.taskError(ctx, what, u, exit)
		}
		if time.Now().After(ends) {
			e := backends.Errorf(backends.ProviderError, "%s: the task takes longer than %s.", what, c.account.timeout).
				WithRemedy("See the cluster's task list. If it is only slow, raise the account's task_timeout, and run again: it goes on where it ended.")
			e.Details, e.Err = map[string]any{"task": u.text}, errSlow
			return e
		}
	}
}

// errSlow is the cause of the error of a task that goes on, and only isn't waited for
// any longer.
var errSlow = errors.New("the task goes on")

// maxLost is how often a task may not be found before it counts as lost.
const maxLost = 10

// taskError is the error of a task that failed.
func (c *Client) taskError(ctx context.Context, what string, u upid, exit string) error {
	said := strings.TrimRight(backends.Printable(exit), ". ")
	lines := c.lastLines(ctx, u)
	e := backends.Errorf(backends.ProviderError, "%s: the task failed: %s.%s", what, said, lines)
	e.Reason = backends.ReasonAction
	e.Details = map[string]any{"task": u.text, "type": u.kind, "message": backends.Printable(exit)}
	switch {
	case exit == unexpected:
		e.Ambiguous = true
	case textsLocked.MatchString(exit):
		e.Reason, e.Retryable = backends.ReasonLocked, true
	case textsSpace.MatchString(exit), textsSpace.MatchString(lines): // why QEMU didn't start is in the log only
		e.Reason = backends.ReasonCapacity
		e.Remedy = "Make room, or choose another storage or node."
	default:
		if found := permissionForm.FindString(exit); found != "" {
			e.Reason, e.Remedy = backends.ReasonPermission, permissionRemedy(exit)
		}
	}
	return e
}

// linesShown is how many of a task's last lines an error shows, linesRead how many
// are read: the log begins with the oldest, and a full clone writes one for each
// percent.
const (
	linesShown = 8
	linesRead  = 5000
)

type logLine struct {
	Text string `json:"t"`
}

// lastLines are the last lines of a task's log, "" when they can't be had: they only
// explain.
func (c *Client) lastLines(ctx context.Context, u upid) string {
	lines, err := call[[]logLine](ctx, c, backends.Idempotent, "Reading a task's log",
		request{http.MethodGet, at("nodes", u.node, "tasks", u.text, "log"), url.Values{"start": {"0"}, "limit": {fmt.Sprint(linesRead)}}}, nil)
	if err != nil {
		return ""
	}
	var out []string
	for _, l := range lines[max(0, len(lines)-linesShown):] {
		if line := strings.TrimSpace(backends.Printable(l.Text)); line != "" && !strings.HasPrefix(line, "TASK ") {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " Its log ends: " + strings.Join(out, " | ")
}

// run begins a task and waits for its end, and asks again for one that could not get
// a lock. settled is asked before a call is sent again: it tells whether there is
// nothing left to do; nil for a call that may be repeated.
func (c *Client) run(ctx context.Context, what string, r request, settled func(context.Context) (bool, error)) (upid, error) {
	var last upid
	tries := 0
	err := backends.Retry(ctx, backends.Idempotent, func(ctx context.Context) error {
		if tries++; tries > 1 && settled != nil {
			if done, err := settled(ctx); done || err != nil {
				return err
			}
		}
		// One try: the loop around it is the retry policy.
		var text string
		err := c.try(ctx, what, r, &text, func() bool { _, ok := parseUPID(text); return ok })
		if err == nil {
			last, _ = parseUPID(text)
			err = c.await(ctx, what, last)
		}
		return err
	})
	return last, err
}
