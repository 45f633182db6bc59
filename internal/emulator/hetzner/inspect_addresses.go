// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

// PrimaryIP is what a test may want to know of a primary IP.
type PrimaryIP struct {
	ID   int64
	Name string
	// Type is ipv4 or ipv6.
	Type string
	// Server is the server it is assigned to; 0 for none.
	Server     int64
	AutoDelete bool
}

// PrimaryIPs returns all primary IPs of all projects as they are now.
func (s *Service) PrimaryIPs() []PrimaryIP {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []PrimaryIP
	for _, p := range s.current() {
		for _, ip := range byID(p.PrimaryIPs) {
			out = append(out, PrimaryIP{ip.ID, ip.Name, ip.Type, ip.Assignee, ip.AutoDelete})
		}
	}
	return out
}
