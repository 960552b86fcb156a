package ipam

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/google/btree"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// claimed are the addresses of one claim. A request finds without looking at all of them how many there are, and which of
// those that are kept for whichever pod comes was given up last.
type claimed struct {
	parts []*claimPart
	n     [2]int // by family
}

// claimPart are those of one pool, one interface and one family. They are never none.
type claimPart struct {
	of  partKey
	all *btree.BTreeG[*record] // in the order of takenFirst
}

type partKey struct {
	pool, ifName string
	family       ipaddr.Family
}

func partOf(r *record) partKey {
	return partKey{r.params.Value().Pool, r.ifName.Value(), ipaddr.FamilyOf(r.addr)}
}

// treeDegree keeps both the trees of many small claims and the way through that of a large one short.
const treeDegree = 16

// forAny says whether an address is kept for whichever pod of its claim comes.
func (r *record) forAny() bool { return r.state == Reserved && r.key() == "" && !r.has(flagDeleting) }

// takenFirst orders the addresses of a claim: those that any pod may have, the one that was given up last first, then all
// others.
func takenFirst(a, b *record) bool {
	x, y := a.forAny(), b.forAny()
	if x != y {
		return x
	}
	if x && a.updated != b.updated {
		return a.updated > b.updated
	}
	return a.addr.Less(b.addr)
}

func (x *Index) addClaimed(r *record) {
	c := x.byClaim[r.claim()]
	if c == nil {
		c = &claimed{}
		x.byClaim[r.claim()] = c
	}
	c.n[ipaddr.FamilyOf(r.addr)]++
	of := partOf(r)
	i := slices.IndexFunc(c.parts, func(p *claimPart) bool { return p.of == of })
	if i < 0 {
		i = len(c.parts)
		c.parts = append(c.parts, &claimPart{of, btree.NewWithFreeListG(treeDegree, takenFirst, x.freeNodes)})
	}
	c.parts[i].all.ReplaceOrInsert(r)
}

// removeClaimed takes out an address that was added.
func (x *Index) removeClaimed(r *record) {
	c, of := x.byClaim[r.claim()], partOf(r)
	c.n[ipaddr.FamilyOf(r.addr)]--
	i := slices.IndexFunc(c.parts, func(p *claimPart) bool { return p.of == of })
	if c.parts[i].all.Delete(r); c.parts[i].all.Len() > 0 {
		return
	}
	if c.parts = slices.Delete(c.parts, i, i+1); len(c.parts) == 0 {
		delete(x.byClaim, r.claim())
	}
}

func (x *Index) claimed(claim string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		c := x.byClaim[claim]
		if c == nil {
			return
		}
		for _, p := range c.parts {
			more := true
			p.all.Ascend(func(r *record) bool {
				more = yield(r)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// retainedForAny is the one of the addresses that are kept for whichever pod of the request's claim comes that was given up
// last and can be had; the choice has no pool where there is none.
func (x *Index) retainedForAny(w PickRequest, n need, chosen []choice) (best choice) {
	c := x.byClaim[w.Claim]
	if c == nil {
		return best
	}
	var first *record
	for _, part := range c.parts {
		if part.of.family != n.family || !x.mayServe(part, w, chosen) {
			continue
		}
		part.all.Ascend(func(r *record) bool {
			if !r.forAny() || first != nil && takenFirst(first, r) {
				return false
			}
			if !waits(r, w, n) {
				return part.of.ifName == "" || part.of.ifName == w.IfName
			}
			p, _, served := x.serving(r.addr)
			if x.busy(r) || w.promised(r.addr) || !served || p.Terminating || !x.fits(p, w) || x.barred(p, w, r.addr, chosen) {
				return true
			}
			first, best = r, choice{p, r.addr, n.slot}
			return false
		})
	}
	return best
}

// retainedFor is an address of a pool, as its object says, that is kept for whichever pod of the request's claim comes; invalid
// for none.
func (x *Index) retainedFor(p *poolState, w PickRequest, n need) (found netip.Addr) {
	c := x.byClaim[w.Claim]
	if c == nil {
		return found
	}
	for _, part := range c.parts {
		if part.of.pool == p.Name && part.of.family == n.family {
			part.all.Ascend(func(r *record) bool {
				if r.forAny() && waits(r, w, n) {
					found = r.addr
				}
				return r.forAny() && !found.IsValid()
			})
		}
		if found.IsValid() {
			break
		}
	}
	return found
}

// mayServe is false where a request gets none of the addresses of a part: their pool serves them all itself, and not the
// request. For the namespaces that it counts for they are all like the first.
func (x *Index) mayServe(part *claimPart, w PickRequest, chosen []choice) bool {
	p := x.pools[part.of.pool]
	first, _ := part.all.Min()
	return !x.servesItsOwn(part.of.pool) || !p.Terminating && x.fits(p, w) && !x.barred(p, w, first.addr, chosen)
}

// servesItsOwn says whether a pool serves each address whose object names it.
func (x *Index) servesItsOwn(pool string) bool {
	p, m := x.pools[pool], x.byPool[pool]
	return p != nil && p.Valid() && len(p.overlaps) == 0 && (m == nil || len(m.draining) == 0)
}

// ClaimPart are the addresses of a claim of one pool, as their objects say, for one interface, empty for any, and of one family.
type ClaimPart struct {
	Pool, IfName string
	Family       ipaddr.Family
	// N is how many there are, at least one; One is any of them.
	N   int
	One Lease
}

// ClaimUsage are all parts of a claim.
type ClaimUsage []ClaimPart

// ClaimUsage counts the addresses of a claim, those in use and those that are kept for it, at a cost that does not grow with
// them. The parts are in the order of pools, interfaces and families.
func (x *Index) ClaimUsage(claim string) (all ClaimUsage) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.byClaim[claim]
	if c == nil {
		return nil
	}
	for _, p := range c.parts {
		one, _ := p.all.Min()
		all = append(all, ClaimPart{p.of.pool, p.of.ifName, p.of.family, p.all.Len(), one.lease()})
	}
	slices.SortFunc(all, func(a, b ClaimPart) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.IfName, b.IfName), cmp.Compare(a.Family, b.Family))
	})
	return all
}

// CountClaimed is how many addresses a claim has, those in use and those that are kept for it.
func (x *Index) CountClaimed(claim string) (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.byClaim[claim]; c != nil {
		for _, p := range c.parts {
			n += p.all.Len()
		}
	}
	return n
}

// Of returns how many there are of a family.
func (all ClaimUsage) Of(f ipaddr.Family) (n int) {
	for _, p := range all {
		if p.Family == f {
			n += p.N
		}
	}
	return n
}

// All is how many there are of both families.
func (all ClaimUsage) All() int { return all.Of(ipaddr.IPv4) + all.Of(ipaddr.IPv6) }

// Most is how many there are of the family of which there are more.
func (all ClaimUsage) Most() int { return max(all.Of(ipaddr.IPv4), all.Of(ipaddr.IPv6)) }

// RetainedIn are the pools that serve addresses which are kept for whichever pod of a claim comes, less those that are
// promised.
func (x *Index) RetainedIn(claim string, promised func(netip.Addr) bool) (pools []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.byClaim[claim]
	if c == nil {
		return nil
	}
	for _, part := range c.parts {
		alone := x.servesItsOwn(part.of.pool)
		part.all.Ascend(func(r *record) bool {
			if !r.forAny() {
				return false
			}
			p, _, served := x.serving(r.addr)
			if !served || promised(r.addr) {
				return true
			}
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
			}
			return !alone // else all others are served by it, too
		})
	}
	slices.Sort(pools)
	return pools
}
