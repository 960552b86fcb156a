package allocator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go4.org/netipx"
	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Preallocation is what a claim is to have before any pod asks for it.
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
	// Size is how many addresses of a family the claim is to have in all, those that pods have included; of Addresses
	// it has no more than there are. AtMost bounds how many it has after this call; 0 for no other bound than Size.
	Size, AtMost int
	// Void reports, by what the API server has at that moment, whether the claim has no use for addresses any more. It
	// is asked when some were taken, which go back then.
	Void func(context.Context) (bool, error)
}

// Stock counts what a claim has.
type Stock struct {
	// Has is how many addresses of a family the claim has, in use or kept; of two families that of which it has more.
	Has int
	// Missing is how many more it was to have and could not get, Why the reason for the first of them.
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

// Preallocate takes addresses until a claim has as many as it is to have, and keeps them for it. It takes what there
// is where that is too few. What it took stays taken also with an error; asking again takes the rest: a *ipam.Refusal
// of the reasons Unavailable, OutcomeUnknown or Forbidden, else one of the API server.
//
// Several callers may do so for one claim, also in several processes: they look for the same addresses in the same
// order, and what one of them took too many when all writes before its own were seen, it gives back at once, also when
// its time has run out. Nobody can see a write that is still on its way: what one took that was killed arrives later
// than all others have looked. TakenFor shows the leader which these may be.
func (a *Allocator) Preallocate(ctx context.Context, r Preallocation) (Stock, error) {
	release, err := a.locks.acquire(ctx, r.key())
	if err != nil {
		return a.stock(r), unavailable(err)
	}
	defer release()
	if _, err := a.resolveUnknown(ctx, r.key()); err != nil {
		return a.stock(r), err
	}
	for conflicts := 0; conflicts < maxAttempts; {
		picks, stock := a.pickLacking(r)
		if len(picks) == 0 {
			return stock, nil
		}
		taken, err := a.setAside(ctx, r, picks)
		void := false
		if len(taken) > 0 { // also where other writes failed: whoever asks again finds nothing lacking
			err = cmp.Or(err, a.giveBackSurplus(ctx, r, taken))
		}
		if err == nil && len(taken) > 0 {
			void, err = a.giveBackVoid(ctx, r, taken)
		}
		switch {
		case err != nil || void:
			return a.stock(r), err
		case len(taken) < len(picks):
			conflicts++
		}
	}
	return a.stock(r), ipam.Refuse(ipam.ReasonUnavailable, "other writers were faster %d times", maxAttempts).
		WithHint("ask again")
}

// stock counts what a claim has, where it is not known what it lacks.
func (a *Allocator) stock(r Preallocation) Stock {
	return Stock{Has: a.index.Leases.ClaimUsage(r.Claim).Most()}
}

// lack is how often a claim lacks what a request takes.
type lack struct {
	n    int
	want ipam.PickRequest
}

// lacks returns what a claim lacks beside what it has.
func (a *Allocator) lacks(r Preallocation, held index.ClaimUsage) (all []lack) {
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
	for _, of := range a.byNetwork(held) {
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
func (a *Allocator) byNetwork(held index.ClaimUsage) (groups []index.ClaimUsage) {
	at := map[string]int{}
	for _, part := range held {
		p, _ := a.index.Pools.Get(part.Pool)
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
func (a *Allocator) pickLacking(r Preallocation) (picks []ipam.Pick, stock Stock) {
	held := a.index.Leases.ClaimUsage(r.Claim)
	stock.Has = held.Most()
	for _, l := range a.lacks(r, held) {
		for left := l.n; left > 0; left-- {
			if len(picks) >= parallelWrites {
				return picks, stock
			}
			more, refusal := a.pickFor(r, l.want)
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
func (a *Allocator) pickFor(r Preallocation, want ipam.PickRequest) (picks []ipam.Pick, first *ipam.Refusal) {
	for _, want.Namespace = range r.Namespaces {
		picks, refusal := a.index.Pick(want, a.leases.Now())
		if refusal == nil {
			return picks, nil
		}
		first = cmp.Or(first, refusal)
	}
	return nil, first
}

// setAside writes picked addresses as kept for the claim. It returns those of which nobody else was faster.
func (a *Allocator) setAside(ctx context.Context, r Preallocation, picks []ipam.Pick) (taken []lease.Lease, err error) {
	change := lease.Change{
		Verb: lease.VerbReserve, By: "claim " + r.Claim, Reason: preallocatedFor + strconv.Itoa(r.all()),
	}
	var mu sync.Mutex
	var group errgroup.Group
	for _, p := range picks {
		group.Go(func() error {
			if err := a.makeBlock(ctx, p); err != nil {
				if a.index.Forget(p.Current.Addr); errors.Is(err, errStale) {
					return nil
				}
				return err
			}
			next, ok := lease.ReserveFor(p.Current, p.Pool.Params(), r.retention(), a.leases.Now(), change)
			stored, err := a.writePicked(ctx, r.key(), p.Current, next, ok)
			switch {
			case errors.Is(err, errStale):
				return nil
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, stored)
			}
			return err
		})
	}
	err = group.Wait()
	return taken, err
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
