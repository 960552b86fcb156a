package allocator

import (
	"cmp"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// lack counts how many times a claim lacks what a request takes.
type lack struct {
	n    int
	want ipam.PickRequest
}

// lacks returns what a claim lacks beside what it has.
func (s *Stocker) lacks(r Preallocation, held index.ClaimUsage) (all []lack) {
	want := ipam.PickRequest{
		Ahead: true, Pools: r.Pools, Key: r.key(), Who: "claim " + r.Claim, Holder: "claim " + r.Claim,
		Claim: r.Claim}
	if r.Addresses != nil {
		for _, f := range ipaddr.Families() {
			set := ipaddr.OfFamily(r.Addresses, f)
			wanted := int(min(uint64(r.until()), ipaddr.SizeOfSet(set)))
			want.Sets = []*netipx.IPSet{set}
			all = append(all, lack{wanted - held.Of(f), want})
		}
		return all
	}
	for _, of := range s.byNetwork(held) {
		// An address that the other family of its network is missing beside: its pod will take one of each.
		n4, n6 := of.Of(ipaddr.IPv4), of.Of(ipaddr.IPv6)
		less, beside := ipaddr.IPv6, want
		if n4 < n6 {
			less = ipaddr.IPv4
		}
		beside.Have = []lease.Lease{of[slices.IndexFunc(of,
			func(p index.ClaimPart) bool { return p.Family != less })].One}
		all = append(all, lack{min(max(n4, n6)-min(n4, n6), r.until()-held.Of(less)), beside})
	}
	return append(all, lack{r.until() - held.Most(), want})
}

// byNetwork groups addresses by network, of those networks that have several pools, perhaps of two families.
func (s *Stocker) byNetwork(held index.ClaimUsage) (groups []index.ClaimUsage) {
	at := map[string]int{}
	for _, part := range held {
		p, _ := s.engine.index.Pools.Get(part.Pool)
		if p.Network == "" {
			continue
		}
		i, known := at[p.Network]
		if !known {
			i = len(groups)
			at[p.Network], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], part)
	}
	return groups
}

// pickLacking picks some of what a claim lacks, as many as are written at once. Where it picks none, there are no more,
// and stock is what the claim has in the end.
func (s *Stocker) pickLacking(r Preallocation) (picks []ipam.Pick, stock Stock) {
	held := s.engine.index.Leases.ClaimUsage(r.Claim)
	stock.Has = held.Most()
	for _, l := range s.lacks(r, held) {
		for left := l.n; left > 0; left-- {
			if len(picks) >= parallelWrites {
				return picks, stock
			}
			more, refusal := s.pickFor(r, l.want)
			if refusal != nil {
				stock.Missing, stock.Why = stock.Missing+left, cmp.Or(stock.Why, refusal)
			}
			if len(more) == 0 {
				break
			}
			picks = append(picks, more...)
		}
	}
	return picks, stock
}

// pickFor picks for the first namespace whose pools have what is wanted. The refusal is that of the first.
func (s *Stocker) pickFor(r Preallocation, want ipam.PickRequest) (picks []ipam.Pick, first *ipam.Refusal) {
	for _, want.Namespace = range r.Namespaces {
		picks, refusal := s.engine.index.Pick(want, s.engine.leases.Now())
		if refusal == nil {
			return picks, nil
		}
		first = cmp.Or(first, refusal)
	}
	return nil, first
}
