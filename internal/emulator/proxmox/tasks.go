// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"regexp"
	"slices"
	"strings"
)

func taskRoutes() []route {
	return []route{
		{method: "GET", path: "/cluster/tasks", handle: clusterTasks},
		{method: "GET", path: "/nodes/{node}/tasks", handle: nodeTasks},
		{method: "DELETE", path: "/nodes/{node}/tasks/{upid}", handle: stopTask},
		{method: "GET", path: "/nodes/{node}/tasks/{upid}/status", handle: taskStatus},
		{method: "GET", path: "/nodes/{node}/tasks/{upid}/log", handle: taskLog},
	}
}

// row is a task in answers. The real API parts a token's name from its user.
func (t *task) row() map[string]any {
	row := map[string]any{
		"upid": t.UPID, "node": t.Node, "pid": t.PID, "pstart": t.PStart, "starttime": t.Start.Unix(),
		"type": t.Type, "id": t.ID,
	}
	user, token, isToken := strings.Cut(t.User, "!")
	row["user"] = user
	if isToken {
		row["tokenid"] = token
	}
	return row
}

// listed is a task in lists, where status is how it ended.
func (t *task) listed(running string) map[string]any {
	row := t.row()
	switch {
	case t.Done:
		row["endtime"], row["status"] = t.End.Unix(), t.Exit
	case running != "":
		row["status"] = running
	}
	return row
}

// readable tells whether the caller may see a task: its own, or with a privilege.
func (c *call) readable(t *task) bool {
	user, _, _ := strings.Cut(t.User, "!")
	return t.User == c.user || user == c.user || c.may("/nodes/"+t.Node, "Sys.Audit")
}

// begun tells whether a task has begun: those that the HA manager will begin
// are only known to it.
func (c *call) begun(t *task) bool { return !t.Start.After(c.now) }

// recentTasks is how many tasks /cluster/tasks shows of each node.
const recentTasks = 25

func clusterTasks(c *call) (any, error) {
	rows := []any{}
	count := map[string]int{}
	for _, t := range slices.Backward(c.p.Tasks) {
		if !c.begun(t) || !c.readable(t) || (t.Done && count[t.Node] >= recentTasks) {
			continue
		}
		count[t.Node]++
		row := t.listed("")
		if t.Done {
			row["saved"] = "1"
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// nodeTasks lists the tasks that are done, unless asked for those that run.
func nodeTasks(c *call) (any, error) {
	source := c.params["source"]
	if source == "" {
		source = "archive"
	}
	rows := []map[string]any{}
	for _, t := range slices.Backward(c.p.Tasks) {
		if t.Node != c.node() || !c.begun(t) || !c.readable(t) || !c.wanted(t, source) {
			continue
		}
		rows = append(rows, t.listed("RUNNING"))
	}
	total := len(rows)
	rows = rows[min(c.number("start", 0), total):]
	if limit := c.number("limit", 50); limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	return page{rows, total}, nil
}

// wanted applies the filters of a node's list of tasks.
func (c *call) wanted(t *task, source string) bool {
	failed := t.Done && t.Exit != "OK" && !strings.HasPrefix(t.Exit, "WARNINGS: ")
	status := "ok"
	switch {
	case failed:
		status = "error"
	case t.Warnings > 0:
		status = "warning"
	}
	statuses := splitList(c.params["statusfilter"])
	switch {
	case source == "archive" && !t.Done, source == "active" && t.Done:
		return false
	case c.flag("errors") && !failed:
		return false
	case len(statuses) > 0 && !slices.Contains(statuses, status):
		return false
	case c.params["typefilter"] != "" && c.params["typefilter"] != t.Type:
		return false
	case c.params["vmid"] != "" && c.params["vmid"] != t.ID:
		return false
	case c.params["userfilter"] != "" && !strings.Contains(t.User, c.params["userfilter"]):
		return false
	case c.params["since"] != "" && t.Start.Unix() < int64(c.number("since", 0)):
		return false
	case c.params["until"] != "" && t.Start.Unix() > int64(c.number("until", 0)):
		return false
	}
	return true
}

var upidForm = regexp.MustCompile(`^UPID:[a-zA-Z0-9-]+:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:[^:\s]+:[^:\s]*:[^:\s]+:$`)

// task finds the task of the path, whose owner may see it without a privilege.
func (c *call) task() (*task, error) {
	upid := c.ids["upid"]
	if !upidForm.MatchString(upid) {
		return nil, died("unable to parse worker upid '%s'", upid)
	}
	for _, t := range c.p.Tasks {
		if t.UPID == upid && t.Node == c.node() && c.begun(t) {
			if !c.readable(t) {
				return nil, forbidden("/nodes/"+c.node(), "Sys.Audit")
			}
			return t, nil
		}
	}
	return nil, badParam("upid", "no such task")
}

func taskStatus(c *call) (any, error) {
	t, err := c.task()
	if err != nil {
		return nil, err
	}
	row := t.row()
	row["status"] = "running"
	if t.Done {
		row["status"], row["exitstatus"] = "stopped", t.Exit
	}
	return row, nil
}

func taskLog(c *call) (any, error) {
	t, err := c.task()
	if err != nil {
		return nil, err
	}
	rows := []map[string]any{}
	for i, line := range t.Log {
		rows = append(rows, map[string]any{"n": i + 1, "t": line})
	}
	total := len(rows)
	if total == 0 {
		rows = append(rows, map[string]any{"n": 1, "t": "no content"})
	}
	rows = rows[min(c.number("start", 0), len(rows)):]
	if limit := c.number("limit", 50); limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	return page{rows, total}, nil
}

// stopTask ends a worker with a signal. Whoever began it may.
func stopTask(c *call) (any, error) {
	t, err := c.task()
	if err != nil {
		return nil, err
	}
	if t.User != c.user && !c.may("/nodes/"+c.node(), "Sys.Modify") {
		return nil, forbidden("/nodes/"+c.node(), "Sys.Modify")
	}
	if t.Done {
		return nil, nil
	}
	exit := "received interrupt"
	if t.Type == "qmclone" {
		w := &worker{s: c.s, p: c.p, t: t, at: c.now}
		exit = abandonClone(w, exit).Error()
	}
	c.p.finish(t, c.now, exit)
	return nil, nil
}
