// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// stateOf maps what a node says of a VM. The lock of a VM that is being made or
// destroyed says more than its status. A paused guest is neither running nor
// stopped: nothing is done about its power.
func stateOf(status, qmpStatus, lock string) (state backends.State, message string) {
	switch {
	case lock == "destroyed":
		return backends.StateDeleting, ""
	case lock == "clone" || lock == "create":
		return backends.StatePending, ""
	case status == "stopped":
		return backends.StateStopped, ""
	case status == "running" && (qmpStatus == "" || qmpStatus == "running"):
		return backends.StateRunning, ""
	case status == "running":
		return backends.StateUnknown, fmt.Sprintf("The VM is %s.", backends.Printable(qmpStatus))
	case status == "":
		return backends.StateUnknown, "Proxmox VE doesn't say the VM's status."
	default:
		return backends.StateUnknown, fmt.Sprintf("Proxmox VE reports a status this version doesn't know: %q.", backends.Printable(status))
	}
}

// labelsOf are tags that aren't ours, as labels: key.value, or the key alone. Of two
// with one key the second is a key of its own, so that [tagsOf] gets all tags back.
func labelsOf(tags []string) map[string]string {
	out := map[string]string{}
	for _, tag := range foreignTags(tags) {
		key, value, _ := strings.Cut(tag, ".")
		if _, taken := out[key]; taken || key == "" || value == "" {
			key, value = tag, ""
		}
		out[key] = value
	}
	return out
}

// tagsOf are the tags of labels.
func tagsOf(labels map[string]string) []string {
	var out []string
	for key, value := range labels {
		out = append(out, labelTag(key, value))
	}
	return out
}

// machine is a VM in our words, its state and addresses aside.
func (c *Client) machine(vmid int, name string, n note, tags []string) backends.Machine {
	m := backends.Machine{ID: strconv.Itoa(vmid), Name: name, Region: c.account.region, Labels: labelsOf(tags)}
	if n.marks.Managed {
		m.Marks, m.ImageID, m.Offer, m.Created, m.Protected = n.marks, n.image, n.offer, n.created, n.protected
	}
	return m
}

// fromRow is a VM as its node's list shows it.
func (c *Client) fromRow(row vmRow, n note) backends.Machine {
	m := c.machine(row.vmid(), row.Name, n, splitTags(row.Tags))
	m.State, m.Message = stateOf(row.Status, "", row.Lock)
	m.Offer = offerOf(n, row.CPUs.number(), row.MaxMem.number(), row.MaxDisk.number())
	return m
}

// status is a VM's state as its node knows it.
type status struct {
	Status    string `json:"status"`
	QMPStatus string `json:"qmpstatus"`
	Lock      string `json:"lock"`
	HA        struct {
		Managed scalar `json:"managed"`
	} `json:"ha"`
}

// fromConfig is a VM by its options and its state. Its bridge is one of the former,
// so that only a get knows it; it is left out, as in lists.
func (c *Client) fromConfig(v *vm, s status) backends.Machine {
	n, _ := v.config.note(v.vmid)
	m := c.machine(v.vmid, v.config.get("name"), n, v.config.tags())
	lock := s.Lock
	if lock == "" {
		lock = v.config.get("lock")
	}
	m.State, m.Message = stateOf(s.Status, s.QMPStatus, lock)
	disk, _ := v.config.diskSize(c.account.disk)
	m.Offer = offerOf(n, v.config.cpus(), v.config.memoryMiB()<<20, disk)
	m.Protected = v.config["protection"].isTrue()
	return m
}

// partial is a VM on a node that can't be reached: what the cluster knows of it.
func (c *Client) partial(row vmRow, n note) backends.Machine {
	m := c.machine(row.vmid(), row.Name, n, splitTags(row.Tags))
	m.Partial, m.State = true, backends.StateUnknown
	m.Message = fmt.Sprintf("The node %s can't be reached.", row.Node)
	return m
}

// noteFor is what is written on the VM of a wish.
func (c *Client) noteFor(spec backends.MachineSpec, template *vm) note {
	marks := spec.Marks
	marks.Managed, marks.Complete = true, false
	return note{
		marks: marks, image: strconv.Itoa(template.vmid), offer: spec.Offer, disk: c.kept(template.config, spec.Offer),
		created: time.Now().UTC().Truncate(time.Second),
	}
}

// noteOfMachine is what is written on a machine that was seen, with other marks.
func noteOfMachine(m backends.Machine, marks backends.Marks) note {
	n := note{marks: marks, image: m.ImageID, created: m.Created, protected: m.Protected}
	if _, ok := parseOffer(m.Offer); ok {
		n.offer = m.Offer
	}
	return n
}

// specTags are the tags of a wish.
func specTags(spec backends.MachineSpec) []string {
	return append(spec.Options.Strings("tags"), tagsOf(spec.Labels)...)
}
