// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package proxmox

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/better-compute/terraform-provider-bettercompute/internal/backends"
)

// defaultOffers are listed where an account lists none; any other size may be used
// there too.
var defaultOffers = []string{"1c-2g", "2c-4g", "4c-8g", "8c-32g"}

// The largest sizes that are understood: those of Proxmox VE, and for disks what is
// surely a slip of the pen beyond.
const (
	maxCPUs    = 8192
	maxMemory  = 16384  // GiB
	maxDiskGiB = 131072 // 128 TiB
)

const gib = 1 << 30

// size is an offer's meaning.
type size struct {
	cpus, memoryGiB, diskGiB int64 // diskGiB is 0 where the template's disk stays as it is
}

var offerForm = regexp.MustCompile(`^([1-9]\d{0,5})c-([1-9]\d{0,5})g(?:-([1-9]\d{0,5})d)?$`)

func parseOffer(id string) (size, bool) {
	found := offerForm.FindStringSubmatch(id)
	if found == nil {
		return size{}, false
	}
	var n [3]int64
	for i, digits := range found[1:] {
		n[i], _ = strconv.ParseInt("0"+digits, 10, 64)
	}
	s := size{n[0], n[1], n[2]}
	return s, s.cpus <= maxCPUs && s.memoryGiB <= maxMemory && s.diskGiB <= maxDiskGiB
}

func (s size) String() string {
	out := fmt.Sprintf("%dc-%dg", s.cpus, s.memoryGiB)
	if s.diskGiB > 0 {
		out += fmt.Sprintf("-%dd", s.diskGiB)
	}
	return out
}

// checkOffer says what is wrong with an offer's form, or which bound it is beyond.
func checkOffer(s string) string {
	if _, ok := parseOffer(s); ok {
		return ""
	}
	found := looseOfferForm.FindStringSubmatch(s)
	if found == nil {
		return strconv.Quote(s) + " is not a size: virtual CPUs, GiB of memory and, if the boot disk is to be grown, GiB of disk, such as 2c-4g or 4c-16g-100d."
	}
	for i, bound := range []struct {
		what string
		most int
	}{{"virtual CPUs", maxCPUs}, {"GiB of memory", maxMemory}, {"GiB of boot disk", maxDiskGiB}} {
		digits := found[i+1]
		if n, err := strconv.ParseInt(digits, 10, 64); digits != "" && (err != nil || n < 1 || n > int64(bound.most)) {
			return fmt.Sprintf("%q has %s %s; there are from 1 to %d.", s, digits, bound.what, bound.most)
		}
	}
	return strconv.Quote(s) + " is not written as a size is: without zeros in front, such as 2c-4g."
}

// looseOfferForm is that of an offer with numbers that may be out of bounds.
var looseOfferForm = regexp.MustCompile(`^(\d{1,30})c-(\d{1,30})g(?:-(\d{1,30})d)?$`)

// offerOf is the offer that a VM has: the one it was made as, as long as it still has
// its CPUs, memory and boot disk, else what it has now. One that is half made is of the
// offer that it will have. What isn't known is 0. A disk that isn't part of the offer may
// have any size.
func offerOf(n note, cpus, memory, disk int64) string {
	s, ok := parseOffer(n.offer)
	if s.diskGiB == 0 {
		disk = 0
	}
	sameDisk := disk == 0 || mib(disk) == cmp.Or(n.disk, s.diskGiB<<10)
	halfMade := n.marks.Managed && !n.marks.Complete
	if ok && (halfMade || cpus == 0 || s.cpus == cpus && s.memoryGiB*gib == memory && sameDisk) {
		return n.offer
	}
	now := size{cpus: cpus, memoryGiB: memory / gib}
	switch {
	case cpus == 0 || memory == 0:
		return ""
	case memory%gib != 0:
		return fmt.Sprintf("%dc-%.2fg", cpus, float64(memory)/gib)
	case disk > 0 && sameDisk:
		now.diskGiB = s.diskGiB
	case disk > 0:
		now.diskGiB = (disk + gib - 1) / gib
	}
	return now.String()
}

// mib is a size in MiB, rounded up.
func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// kept is a boot disk's size in MiB where it is larger than the offer's, else 0.
func (c *Client) kept(config vmConfig, offer string) int64 {
	s, ok := parseOffer(offer)
	have, _ := config.diskSize(c.account.disk)
	if !ok || s.diskGiB == 0 || have <= s.diskGiB*gib {
		return 0
	}
	return mib(have)
}

// keptAgain is what a VM's note says of its boot disk after its disk was made from a
// template once more: it is as large as the old one, or as the template's.
func (c *Client) keptAgain(n note, template vmConfig) int64 {
	if n.disk == 0 {
		return c.kept(template, n.offer)
	}
	s, _ := parseOffer(n.offer)
	have, _ := template.diskSize(c.account.disk)
	disk := max(n.disk, mib(have))
	if disk == s.diskGiB<<10 {
		return 0
	}
	return disk
}

// has tells whether a node has room for a size. A node that doesn't say what it has
// (no Sys.Audit) counts as having room.
func (n nodeRow) has(s size) bool {
	if n.Status != "online" {
		return false
	}
	cpus, memory := n.MaxCPU.number(), n.MaxMem.number()
	return cpus == 0 || memory == 0 || cpus >= s.cpus && memory-n.Mem.number() >= s.memoryGiB*gib
}

// available tells whether a size can be had, on one node or, where that is "", any.
func available(nodes []nodeRow, node string, s size) bool {
	return slices.ContainsFunc(nodes, func(n nodeRow) bool { return (node == "" || n.Node == node) && n.has(s) })
}

func (c *Client) offer(s size, nodes []nodeRow, node string) backends.Offer {
	return backends.Offer{
		ID: s.String(), Kind: backends.KindVPS, Region: c.account.region, VCPU: s.cpus, MemoryGiB: float64(s.memoryGiB),
		DiskGiB: s.diskGiB, Available: available(nodes, node, s),
	}
}

// listed are the offers that the account shows.
func (c *Client) listed() []string {
	if len(c.account.offers) > 0 {
		return c.account.offers
	}
	return defaultOffers
}

// near are the listed offers that a wrong one may have meant: all of them where they
// are few.
func (c *Client) near(id string) []string {
	listed := c.listed()
	if len(listed) <= backends.Nearest {
		return listed
	}
	return backends.Near(id, listed, backends.Nearest)
}

// Offers implements [backends.Backend].
func (c *Client) Offers(ctx context.Context, query backends.OfferQuery) ([]backends.Offer, error) {
	nodes, err := c.room.Get(ctx)
	if err != nil {
		return nil, err
	}
	var out []backends.Offer
	for _, id := range c.listed() {
		s, ok := parseOffer(id)
		if !ok {
			continue // the account's check has refused it
		}
		o := c.offer(s, nodes, c.account.node)
		listed := slices.ContainsFunc(out, func(x backends.Offer) bool { return x.ID == o.ID })
		if query.Matches(o) && !listed {
			out = append(out, o)
		}
	}
	backends.SortOffers(out)
	return out, nil
}

// checkSize holds an offer against the account and, with nodes, against the room
// that they have.
func (c *Client) checkSize(id string, nodes []nodeRow, node string) (*backends.Offer, size, *backends.Error) {
	s, ok := parseOffer(id)
	switch {
	case !ok:
		return nil, s, backends.Errorf(backends.InvalidInput, "%s", checkOffer(id)).At("offer").
			WithRemedy("Use %s.", backends.Choice(c.near(id)))
	case len(c.account.offers) > 0 && !slices.Contains(c.account.offers, id):
		return nil, s, backends.Errorf(backends.InvalidInput, "The offer %q is not among the account's.", id).At("offer").
			WithRemedy("Use %s, or add it to the account's offers.", backends.Choice(c.near(id)))
	}
	o := c.offer(s, nodes, node)
	if o.Available || nodes == nil {
		return &o, s, nil
	}
	where := "no node"
	if node != "" {
		where = "the node " + node
		if !slices.ContainsFunc(nodes, func(n nodeRow) bool { return n.Node == node }) {
			var names []string
			for _, n := range nodes {
				names = append(names, n.Node)
			}
			return &o, s, backends.Errorf(backends.InvalidInput, "There is no node %q in the cluster.", node).At(attribute, "node").
				WithRemedy("Use %s, here or in the account.", backends.Choice(names))
		}
		where += " is not up, or doesn't have"
	} else {
		where += " that is up has"
	}
	issue := backends.Errorf(backends.CapacityUnavailable, "There is no room for %s: %s %d CPUs and %d GiB of free memory.", id, where, s.cpus, s.memoryGiB).
		At("offer").WithRemedy("Choose a smaller offer or another node, or make room.")
	issue.Reason = backends.ReasonCapacity
	return &o, s, issue
}
