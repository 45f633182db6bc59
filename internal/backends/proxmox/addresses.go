// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// PlannedAddresses implements [backends.Addresser]: the static ones of ip_config.
func (c *Client) PlannedAddresses(spec backends.MachineSpec) []backends.Address {
	return plannedAddresses(spec)
}

// ReadAddresses implements [backends.Addresser] by one question to the guest agent.
// A guest that doesn't run, has no agent, or whose agent doesn't answer has none
// that could be known; nor has one whose agent the token may not ask, which is
// warned about once.
func (c *Client) ReadAddresses(ctx context.Context, m backends.Machine) ([]backends.Address, error) {
	what := "Asking the guest agent of " + called(m)
	vmid, err := vmidOf(what, m.ID)
	if err != nil {
		return nil, err
	}
	if m.Partial || m.State != backends.StateRunning {
		return nil, nil
	}
	if answer, ok := c.takeTold(m.ID); ok {
		return answer, nil
	}
	node := c.lastAt(vmid)
	if node == "" {
		row, err := c.locate(ctx, what, vmid)
		if err != nil {
			return nil, err
		}
		node = row.Node
	}
	out, err := c.askAgent(ctx, what, where{node, vmid})
	switch e := backends.AsError(err); {
	case err == nil:
		return out, nil
	case e == nil || e.Reason == backends.ReasonCredentials || e.Reason == backends.ReasonSecret:
		return nil, err
	case e.Reason == backends.ReasonPermission:
		c.warnOnce(ctx, e)
	}
	return nil, nil
}

// toldFor is how long the answer that a creation waited for stands for the question
// that is asked at its end.
const toldFor = time.Minute

// told is what an agent answered when it was waited for.
type told struct {
	at        time.Time
	addresses []backends.Address
}

func (c *Client) setTold(id string, addresses []backends.Address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[id] = told{time.Now(), addresses}
}

// takeTold is such an answer, once.
func (c *Client) takeTold(id string) ([]backends.Address, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.told[id]
	delete(c.told, id)
	return t.addresses, ok && time.Since(t.at) < toldFor
}

func (c *Client) warnOnce(ctx context.Context, e *backends.Error) {
	c.mu.Lock()
	before := c.warned
	c.warned = true
	c.mu.Unlock()
	if !before {
		backends.Warn(ctx, e.Message+" So the addresses of VMs that have no static ones are not known. "+e.Remedy)
	}
}

type agentAnswer struct {
	Result []struct {
		Name      string `json:"name"`
		Addresses []struct {
			Address string `json:"ip-address"`
		} `json:"ip-addresses"`
	} `json:"result"`
}

// askAgent sends the question once: an agent that isn't there is no failure that a
// second try mends, and the cluster waits some seconds for it each time.
func (c *Client) askAgent(ctx context.Context, what string, w where) ([]backends.Address, error) {
	var a agentAnswer
	err := c.try(ctx, what, request{http.MethodGet, w.at("agent", "network-get-interfaces"), nil}, &a,
		func() bool { return a.Result != nil })
	if err != nil {
		return nil, err
	}
	var out []backends.Address
	for _, device := range a.Result {
		if isInner(device.Name) {
			continue
		}
		for _, shown := range device.Addresses {
			if a, ok := addressOf(shown.Address); ok && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// innerDevices begin the names of interfaces that lead to what runs inside the
// guest: their addresses are of no use outside of it.
var innerDevices = []string{"lo", "docker", "br-", "veth", "cni", "flannel", "cali", "virbr", "lxcbr", "podman", "kube-", "nodelocaldns"}

func isInner(device string) bool {
	return device == "lo" || slices.ContainsFunc(innerDevices[1:], func(prefix string) bool { return strings.HasPrefix(device, prefix) })
}

// shared is the address space that providers use behind their NAT (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// addressOf is an address in our words; ok is false for one that reaches nothing
// beyond its own link.
func addressOf(text string) (out backends.Address, ok bool) {
	text, _, _ = strings.Cut(text, "%")
	a, err := netip.ParseAddr(text)
	if err != nil {
		return out, false
	}
	a = a.Unmap()
	if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return out, false
	}
	out = backends.Address{Address: a.String(), Family: backends.IPv6, Scope: backends.Public}
	if a.Is4() {
		out.Family = backends.IPv4
	}
	if a.IsPrivate() || shared.Contains(a) {
		out.Scope = backends.Private
	}
	return out, true
}
