package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// maxNamed is how many pools a message spells out.
const maxNamed = 5

// exhausted says why pools that fit gave no address, with their counts. The hint is about the pool
// that is in the way, not one that has room.
func (x *Index) exhausted(w PickRequest, fit []*poolState) *Refusal {
	for _, p := range fit {
		x.expireCooldowns(p)
	}
	var counts []string
	for _, p := range fit[:min(len(fit), maxNamed)] {
		counts = append(counts, x.counts(p)+x.hostCounts(p, w)+x.quotaCounts(p, w))
	}
	if n := len(fit) - maxNamed; n > 0 {
		counts = append(counts, fmt.Sprintf("and %d more pools", n))
	}
	message := fmt.Sprintf("no available IP for %s: %s", w.Who, strings.Join(counts, "; "))
	if none := slices.IndexFunc(fit, func(p *poolState) bool { return p.Serves() && p.set.n == 0 && p.servedByOthers() != "" }); none >= 0 {
		return Refuse(ReasonPoolExhausted, "%s", message).
			WithHint("leave the addresses to one of the pools: bcsnetctl pool remove-ip POOL ADDRESS...; see: bcsnetctl pool describe %s", fit[none].Name)
	}
	for _, p := range fit {
		if !p.Serves() {
			continue
		}
		var why *Refusal
		if p.set.free() > 0 {
			why = x.bars(p, w, netip.Addr{}, nil)
		}
		if a := x.retainedFor(p, w, need{family: p.Family()}); why == nil && a.IsValid() {
			why = x.bars(p, w, a, nil)
		}
		if why != nil {
			return Refuse(why.Reason, "%s", message).WithHint("%s", why.Hint)
		}
	}
	if full := slices.IndexFunc(fit, func(p *poolState) bool { return p.Serves() && p.set.free() == 0 }); full >= 0 {
		if next := x.nextCooled(fit[full]); !next.IsZero() {
			return Refuse(ReasonPoolExhausted, "%s", message).
				WithHint("ask again in %s, or add addresses: bcsnetctl pool add-ip %s RANGE", x.left(next), fit[full].Name)
		}
		return Refuse(ReasonPoolExhausted, "%s", message).
			WithHint("see who holds them: bcsnetctl ip list --pool %s; add addresses: bcsnetctl pool add-ip %s RANGE",
				fit[full].Name, fit[full].Name)
	}
	stopped := slices.IndexFunc(fit, func(p *poolState) bool { return !p.Serves() })
	if stopped < 0 {
		return Refuse(ReasonPoolExhausted, "%s; pods that were placed before will ask for those", message).
			WithHint("add addresses: bcsnetctl pool add-ip %s RANGE", fit[0].Name)
	}
	return Refuse(fit[stopped].stopped(), "%s", message).WithHint("%s", fit[stopped].cure())
}

// noneAmong says why none of the addresses that a request is restricted to could be had.
func (x *Index) noneAmong(w PickRequest, n need, fit []*poolState, chosen []choice) *Refusal {
	ranges, see := ipaddr.FormatSet(n.among), "see: bcsnetctl pool list"
	if w.Claim != "" {
		see = "see: bcsnetctl claim describe " + w.Claim
	}
	none := !slices.ContainsFunc(fit, func(p *poolState) bool { return p.among(n.among) })
	switch {
	case none && w.Ahead:
		return Refuse(ReasonAddressNotInPool, "no available IP for %s: %s is in no pool that serves %s", w.Who, ranges, w.namespace()).
			WithHint("add the addresses to a pool: bcsnetctl pool add-ip POOL RANGE")
	case w.Ahead:
		return Refuse(ReasonPoolExhausted, "no available IP for %s: none of the addresses of %s that it does not have is free", w.Who, ranges).
			WithHint("%s", see)
	case none:
		return Refuse(ReasonAddressNotInPool, "no available IP for %s: %s is in no pool that it may draw from on host %s (%s)", w.Who, ranges, w.Host, poolNames(fit)).
			WithHint("add the addresses to a pool of the host, or let the pod run on a host of theirs; %s", see)
	}
	for _, p := range fit {
		if p.Family() != n.family || !p.Valid() || !x.barred(p, w, netip.Addr{}, chosen) {
			continue
		}
		x.expireCooldowns(p)
		a, free := p.firstAmong(n.among, w, chosen)
		if !free || !p.Serves() {
			if a = x.retainedFor(p, w, n); !a.IsValid() {
				continue
			}
		}
		if refusal := x.bars(p, w, a, chosen); refusal != nil {
			return refusal
		}
	}
	message := fmt.Sprintf("none of the %d addresses of %s is free on host %s", ipaddr.SizeOfSet(n.among), ranges, w.Host)
	switch why := x.whoHas(w, n, fit); {
	case len(why) == 1 && ipaddr.SizeOfSet(n.among) == 1:
		message = why[0]
	case len(why) > 0:
		message += ": " + strings.Join(why, "; ")
	}
	return Refuse(ReasonPoolExhausted, "no available IP for %s: %s", w.Who, message).WithHint("%s", see)
}

// whoHas says of the addresses that a request is restricted to, where they are few, why each cannot be had.
func (x *Index) whoHas(w PickRequest, n need, fit []*poolState) (why []string) {
	if ipaddr.SizeOfSet(n.among) > maxNamed {
		return nil
	}
	for _, r := range n.among.Ranges() {
		for a := r.From(); r.Contains(a); a = a.Next() {
			p, _, served := x.serving(a)
			if !served || !slices.Contains(fit, p) {
				continue
			}
			if refusal := x.taken(a, p, w); refusal != nil {
				why = append(why, refusal.Message)
			}
		}
	}
	return why
}

func (x *Index) counts(p *poolState) string {
	if !p.Serves() {
		return fmt.Sprintf("pool %s is %s", p.Name, p.why())
	}
	c := x.countsOf(p.Name)
	counts := fmt.Sprintf("pool %s (%s) has %d of %d addresses free, %d active, %d reserved",
		p.Name, p.Plan.Subnet, c.Free, c.Capacity, c.Active, c.Reserved)
	if known := c.Free + uint64(c.Active+c.Reserved) + c.Cooling; c.Capacity > known {
		counts += fmt.Sprintf(", %d otherwise in use", c.Capacity-known)
	}
	switch c.Cooling {
	case 0:
	case 1:
		counts += ", 1 is cooling and free in " + x.left(c.NextFree)
	default:
		counts += fmt.Sprintf(", %d are cooling, the next is free in %s", c.Cooling, x.left(c.NextFree))
	}
	return counts + p.servedByOthers()
}

// servedByOthers says which other pools hand out addresses of this one.
func (p *poolState) servedByOthers() string {
	var to []string
	for other, o := range p.overlaps {
		if o.winner != p {
			to = append(to, fmt.Sprintf("%d served by pool %s, which has them, too", ipaddr.SizeOfSet(o.shared), other))
		}
	}
	if len(to) == 0 {
		return ""
	}
	slices.Sort(to)
	return ", " + strings.Join(to, ", ")
}

// why says what keeps a pool from handing out addresses.
func (p *poolState) why() string {
	switch {
	case !p.Valid():
		return "not usable: " + p.Problem
	case p.Terminating:
		return "being deleted"
	case p.Cordoned:
		return "cordoned"
	default:
		return "being rebuilt after its leases were lost, " + p.rebuilding
	}
}

// stopped is the reason of a refusal by a pool that hands out nothing.
func (p *poolState) stopped() Reason {
	if p.Pool.Serves() {
		return ReasonPoolRebuilding
	}
	return ReasonPoolCordoned
}

// cure says what to do about a pool that hands out nothing.
func (p *poolState) cure() string {
	switch {
	case p.Pool.Serves():
		return "ask again: it takes five minutes at most; see: bcsnetctl pool describe " + p.Name
	case p.Valid() && !p.Terminating:
		return "let it hand out addresses again: bcsnetctl pool uncordon " + p.Name
	}
	return "see: bcsnetctl pool describe " + p.Name
}

func poolNames(pools []*poolState) string {
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return firstFew(names, "pools")
}
