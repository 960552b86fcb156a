package ipam

import (
	"iter"
	"slices"

	"github.com/google/btree"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// claimTable has the addresses by the claim that they belong to: each is in the one part of its claim that its pool,
// interface and family make. A claim without addresses is not in it.
type claimTable struct {
	byClaim   map[string]*claimed
	freeNodes *btree.FreeListG[*record] // of the trees of all claims
}

// newClaimTable returns a table without claims.
func newClaimTable() claimTable {
	return claimTable{byClaim: map[string]*claimed{}, freeNodes: btree.NewFreeListG[*record](btree.DefaultFreeListSize)}
}

// claimed are the addresses of one claim. A request finds without looking at all of them how many there are, and which
// of those that are kept for whichever pod comes was given up last.
type claimed struct {
	parts []*claimPart
	n     [2]int // by family
}

// claimPart are those of one pool, one interface and one family. They are never none.
type claimPart struct {
	of  partKey
	all *btree.BTreeG[*record] // in the order of takenFirst
}

// partKey is what the addresses of one part have in common.
type partKey struct {
	pool, ifName string
	family       ipaddr.Family
}

func partOf(r *record) partKey {
	return partKey{r.params.Value().Pool, r.ifName(), ipaddr.FamilyOf(r.addr)}
}

// treeDegree keeps both the trees of many small claims and the way through that of a large one short.
const treeDegree = 16

// forAny reports whether an address is kept for whichever pod of its claim comes.
func (r *record) forAny() bool {
	return r.state == lease.Reserved && r.key() == "" && !r.has(flagDeleting)
}

// takenFirst orders the addresses of a claim: those that any pod may have, the one that was given up last first, then
// all others.
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

// addClaimed adds an address to its claim.
func (x *claimTable) addClaimed(r *record) {
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
func (x *claimTable) removeClaimed(r *record) {
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

// claimed yields the addresses of a claim, part by part.
func (x *claimTable) claimed(claim string) iter.Seq[*record] {
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
