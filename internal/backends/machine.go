// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package backends

import (
	"slices"
	"time"
)

// State is the state of a machine, the same words on every cloud.
type State string

// The states.
const (
	StatePending  State = "pending"
	StateRunning  State = "running"
	StateStopped  State = "stopped"
	StateRescue   State = "rescue"
	StateDeleting State = "deleting"
	StateDeleted  State = "deleted"
	StateError    State = "error"
	StateUnknown  State = "unknown"
)

// Machine is a machine as the cloud shows it.
type Machine struct {
	ID      string // the cloud's own, as text
	Name    string
	State   State
	Message string // why the state is error or unknown
	Offer   string
	Region  string
	ImageID string // the cloud's own id of the image; "" when the image is gone
	// Network is the cloud's id of the private network; "" without one.
	Network   string
	Addresses []Address
	URN       string // where the cloud has such names
	Protected bool   // deletion protection
	Created   time.Time
	// Partial: only ID, Name and Marks are known now, since the part of the cloud that
	// knows the rest, a node of a cluster, can't be reached. Message says so.
	Partial bool
	// Marks are what we wrote on it; the zero value on a machine that isn't ours.
	Marks Marks
	// Labels are the labels or tags that aren't our marks. A backend needs them to
	// write marks and keep the rest.
	Labels map[string]string
}

// About implements [Object].
func (m Machine) About() About {
	return About{"machine", m.ID, m.Name, m.State, m.Message, m.Created, m.Protected, m.Marks}
}

// Family is an address family.
type Family string

// Scope is where an address is reachable.
type Scope string

// The families and scopes.
const (
	IPv4    Family = "ipv4"
	IPv6    Family = "ipv6"
	Public  Scope  = "public"
	Private Scope  = "private"
)

// Address is one address of a machine, without a prefix length.
type Address struct {
	Address string
	Family  Family
	Scope   Scope
}

// First is the first address of a family and scope, "" without one.
func (m Machine) First(family Family, scope Scope) string {
	for _, a := range m.Addresses {
		if a.Family == family && a.Scope == scope {
			return a.Address
		}
	}
	return ""
}

// MachineSpec is a machine as it is wanted. At plan time a field that isn't known
// yet is empty, and [Backend.CheckMachine] passes over it.
type MachineSpec struct {
	Name   string // in the cloud and the guest's hostname: RFC 1123, lower case
	Offer  string
	Image  string
	Region string // never empty when the machine is made
	// SSHKeys are OpenSSH authorized_keys lines.
	SSHKeys []string
	// UserData is what the user wrote, byte for byte; [MachineSpec.CloudInit] joins
	// it with the hostname and the keys.
	UserData string
	// Network is the cloud's own id of a private network; "" for none.
	Network   string
	Labels    map[string]string
	Protected bool
	// Start: power the machine on once it is made.
	Start bool
	// Options are the cloud's own, by the manifest, defaults filled in.
	Options Values
	Marks   Marks
	// Unknown names the inputs (offer, network_id, …) that a plan doesn't know yet;
	// they are empty above, which otherwise means that they are left out.
	Unknown []string
}

// Knows tells whether an input is known, be it empty or not.
func (s MachineSpec) Knows(input string) bool { return !slices.Contains(s.Unknown, input) }

// Resolved is what the catalog says about a [MachineSpec].
type Resolved struct {
	Offer   *Offer // nil when the offer isn't known yet
	ImageID string // "" when the image isn't known yet
	// Warnings are facts worth a look that stop nothing, such as an image that the
	// cloud will withdraw.
	Warnings []string
}

// PowerAction is a change of power.
type PowerAction string

// The power actions.
const (
	PowerOn              PowerAction = "on"
	PowerOff             PowerAction = "off"
	PowerGracefulOff     PowerAction = "graceful-off"
	PowerReset           PowerAction = "reset"
	PowerGracefulRestart PowerAction = "graceful-restart"
	PowerCycle           PowerAction = "cycle"
	PowerNMI             PowerAction = "nmi"
)
