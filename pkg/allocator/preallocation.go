package allocator

import (
	"context"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Preallocation asks for addresses of a claim before any pod asks for them.
type Preallocation struct {
	// Claim is namespace/name.
	Claim string
	// Namespaces whose pods the addresses are for, at least one: pools that serve the first are tried first. An empty
	// one stands for pools that are bound to no namespace.
	Namespaces []string
	// Pools that the addresses come from, in the order in which they are tried; none for any that has a host and serves
	// one of the namespaces.
	Pools []string
	// Addresses that the claim may have; nil for any.
	Addresses *netipx.IPSet
	// Size is the number of addresses of a family that the claim is to have in all, those that pods have included; of
	// Addresses it has no more than there are. AtMost bounds how many it has after this call; 0 for no other bound than
	// Size.
	Size, AtMost int
	// Void reports, by what the API server has at that moment, whether the claim has no use for addresses any more. It
	// is asked when some were taken, which go back then.
	Void func(context.Context) (bool, error)
}

// Stock counts what a claim has.
type Stock struct {
	// Has is the number of addresses of a family that the claim has, in use or kept; of two families the larger number.
	Has int
	// Missing is the number of further addresses that the claim could not get, Why the reason for the first of them.
	Missing int
	Why     *ipam.Refusal
}

func (r Preallocation) key() string { return "claim/" + r.Claim }

// until returns how many addresses of a family the claim has after the call, where there are so many.
func (r Preallocation) until() int {
	if r.AtMost > 0 {
		return min(r.Size, r.AtMost)
	}
	return r.Size
}

// all returns how many addresses of a family the claim can have in the end.
func (r Preallocation) all() int {
	if r.Addresses == nil {
		return r.Size
	}
	most := max(ipaddr.SizeOfSet(ipaddr.OfFamily(r.Addresses, ipaddr.IPv4)),
		ipaddr.SizeOfSet(ipaddr.OfFamily(r.Addresses, ipaddr.IPv6)))
	return int(min(uint64(r.Size), most))
}

// retention returns the retention of the addresses: they are for any pod of the claim.
func (r Preallocation) retention() lease.Retention {
	return lease.Retention{Claim: r.Claim, Fixed: true}
}

// preallocatedFor begins the reason in the history of an address that was taken before a pod asked; the size that the
// claim had then follows.
const preallocatedFor = "preallocated for a size of "

// TakenFor returns the size of its claim for which an address was taken before a pod asked, where no pod has had it
// since; ok is false for any other address.
func TakenFor(l lease.Lease) (size int, ok bool) {
	if !l.IsRetained() || l.PodName != "" {
		return 0, false
	}
	last, ok := l.History.Last()
	text, found := strings.CutPrefix(last.Reason, preallocatedFor)
	if !ok || !found || last.Verb != lease.VerbReserve {
		return 0, false
	}
	size, err := strconv.Atoi(text)
	return size, err == nil && size >= 0
}
