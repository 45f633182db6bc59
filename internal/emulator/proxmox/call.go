// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
)

// call is one call of the API while it is served. It holds the service's lock,
// but for the time that it waits for a VM's.
type call struct {
	s    *Service
	p    *cluster
	r    *http.Request
	now  time.Time
	user string // user@realm!tokenid
	// ids are the variable parts of the path by their names, params all other
	// parameters.
	ids    map[string]string
	params map[string]string
	// deadline is when the call gives up waiting for a lock.
	deadline time.Time
}

// waiting is the error of a handler that has to wait for the lock of a VM. It has
// done nothing yet, and is called again.
type waiting struct{ vmid int }

func (w *waiting) Error() string { return lockTimeout(w.vmid) }

// retryEvery is how long a waiting call sleeps at most before it looks again:
// other calls may free a lock too.
const retryEvery = time.Second

// serve lets the route's handler answer.
func (c *call) serve(project string, r route) (any, error) {
	for {
		result, sleep, err := c.attempt(project, r)
		blocked, isBlocked := errors.AsType[*waiting](err)
		if !isBlocked {
			return result, err
		}
		if sleep <= 0 {
			return nil, died("%s", lockTimeout(blocked.vmid))
		}
		if !pause(c.r.Context(), sleep) {
			return nil, died("client gone")
		}
	}
}

// attempt calls the handler. When it is blocked, sleep is after what time it may
// be worth another attempt; 0 when there is no time left.
func (c *call) attempt(project string, r route) (result any, sleep time.Duration, err error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.now = time.Now()
	c.p = c.s.cluster(project)
	c.s.advance(c.p, c.now)
	result, err = c.run(r)
	// What the handler began may be done at once.
	c.s.advance(c.p, c.now)
	if _, isBlocked := errors.AsType[*waiting](err); !isBlocked {
		return result, 0, err
	}
	if c.deadline.IsZero() {
		c.deadline = c.now.Add(c.s.options.scaled(lockWait))
	}
	sleep = min(c.deadline.Sub(c.now), retryEvery)
	if next, any := c.p.nextEvent(); any {
		sleep = min(sleep, max(next.Sub(c.now), time.Nanosecond))
	}
	if !c.now.Before(c.deadline) {
		sleep = 0
	}
	return nil, sleep, err
}

// run checks what comes before the handler, in the order of the real one.
func (c *call) run(r route) (any, error) {
	if r.allow != nil {
		if err := r.allow(c); err != nil {
			return nil, err
		}
	}
	node, inNode := c.ids["node"]
	if _, ok := c.fault(emulator.KindNodeDown); ok {
		return nil, unreachable()
	}
	if inNode {
		if err := c.reach(node); err != nil {
			return nil, err
		}
	}
	if wrong := c.verify(r); len(wrong) > 0 {
		return nil, badParams(wrong)
	}
	return r.handle(c)
}

// reach is the error of a node that doesn't exist or doesn't answer.
func (c *call) reach(node string) error {
	switch {
	case !c.s.hasNode(node):
		return died("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", node, node)
	case c.p.Down[node]:
		return unreachable()
	}
	return nil
}

// verify holds the parameters, those in the path too, against the schema.
func (c *call) verify(r route) map[string]string {
	// A POST may repeat a parameter of the path in its body.
	for name, value := range c.ids {
		if c.params[name] == value {
			delete(c.params, name)
		}
	}
	wrong := verify(r.params, c.params)
	if vmid, found := c.ids["vmid"]; found {
		if _, problem := vmidParam.check(vmid); problem != "" {
			wrong["vmid"] = problem
		}
	}
	return wrong
}

var vmidParam = param{name: "vmid", kind: integer, min: new(float64(100)), max: new(float64(999999999))}

func (c *call) node() string { return c.ids["node"] }

// vmid is the VMID of the path; what isn't a number is 0, which no VM has.
func (c *call) vmid() int { return atoi(c.ids["vmid"]) }

func (c *call) flag(name string) bool { return c.params[name] == "1" }

// number is a parameter that the schema has found to be a number; absent, it is
// the default.
func (c *call) number(name string, byDefault int) int {
	if text, given := c.params[name]; given {
		return atoi(text)
	}
	return byDefault
}

// fault is the rule of a kind that applies to the call.
func (c *call) fault(kind emulator.Kind) (emulator.Rule, bool) {
	return emulator.FaultFor(c.r.Context(), kind)
}

// guest is the QEMU VM of the path, on the node of the path.
func (c *call) guest() (*guest, error) {
	g := c.p.VMs[c.vmid()]
	if g == nil || g.Node != c.node() || g.LXC {
		return nil, missing(c.node(), c.vmid())
	}
	return g, nil
}

// lock reports that another holds the lock of a VM (a file on its node): the call
// then waits.
func (c *call) lock(g *guest) error {
	if c.p.locked(lockKey(g.Node, g.ID), false, nil) {
		return &waiting{g.ID}
	}
	return nil
}

// skipLock refuses the parameter skiplock, which tokens never may use.
func (c *call) skipLock() error {
	if c.flag("skiplock") {
		return badParam("skiplock", "Only root may use this option.")
	}
	return nil
}

func atoi(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}
