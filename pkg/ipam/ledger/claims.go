package ledger

import (
	"iter"
	"slices"

	"github.com/google/btree"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Claims has the held addresses by the claim that they belong to. Each is in one part of its claim: that of its pool,
// interface and family. A claim without addresses has no entry, and no part is empty.
type Claims struct {
	ByClaim   map[string]*claimed
	freeNodes *btree.FreeListG[*Record] // of the trees of all claims
}

// NewClaims returns a table without claims.
func NewClaims() Claims {
	return Claims{ByClaim: map[string]*claimed{}, freeNodes: btree.NewFreeListG[*Record](btree.DefaultFreeListSize)}
}

// claimed are the addresses of one claim. They are ordered so that a request need not look at all of them to find their
// number, and the address that was released last of those kept for any pod.
type claimed struct {
	Parts []*ClaimPart
	N     [2]int // by family
}

// ClaimPart has the addresses of one pool, interface and family; at least one.
type ClaimPart struct {
	Of  partKey
	All *btree.BTreeG[*Record] // in the order of TakenFirst
}

// partKey has the fields that the addresses of one part have in common.
type partKey struct {
	Pool, IfName string
	Family       ipaddr.Family
}

func partOf(r *Record) partKey {
	return partKey{r.Params.Value().Pool, r.IfName(), ipaddr.FamilyOf(r.Addr)}
}

// treeDegree keeps the trees of small claims small, and those of large claims shallow.
const treeDegree = 16

// ForAny reports whether an address is kept for any pod of its claim.
func (r *Record) ForAny() bool {
	return r.State == lease.Reserved && r.key() == "" && !r.Has(FlagDeleting)
}

// TakenFirst orders the addresses of a claim: first those that any pod may have, beginning with the one released last,
// then all others.
func TakenFirst(a, b *Record) bool {
	x, y := a.ForAny(), b.ForAny()
	if x != y {
		return x
	}
	if x && a.Updated != b.Updated {
		return a.Updated > b.Updated
	}
	return a.Addr.Less(b.Addr)
}

// AddClaimed adds an address to its claim.
func (x *Claims) AddClaimed(r *Record) {
	c := x.ByClaim[r.Claim()]
	if c == nil {
		c = &claimed{}
		x.ByClaim[r.Claim()] = c
	}
	c.N[ipaddr.FamilyOf(r.Addr)]++
	of := partOf(r)
	i := slices.IndexFunc(c.Parts, func(p *ClaimPart) bool { return p.Of == of })
	if i < 0 {
		i = len(c.Parts)
		c.Parts = append(c.Parts, &ClaimPart{of, btree.NewWithFreeListG(treeDegree, TakenFirst, x.freeNodes)})
	}
	c.Parts[i].All.ReplaceOrInsert(r)
}

// RemoveClaimed takes out an address that was added.
func (x *Claims) RemoveClaimed(r *Record) {
	c, of := x.ByClaim[r.Claim()], partOf(r)
	c.N[ipaddr.FamilyOf(r.Addr)]--
	i := slices.IndexFunc(c.Parts, func(p *ClaimPart) bool { return p.Of == of })
	if c.Parts[i].All.Delete(r); c.Parts[i].All.Len() > 0 {
		return
	}
	if c.Parts = slices.Delete(c.Parts, i, i+1); len(c.Parts) == 0 {
		delete(x.ByClaim, r.Claim())
	}
}

// Claimed yields the addresses of a claim, part by part.
func (x *Claims) Claimed(claim string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		c := x.ByClaim[claim]
		if c == nil {
			return
		}
		for _, p := range c.Parts {
			more := true
			p.All.Ascend(func(r *Record) bool {
				more = yield(r)
				return more
			})
			if !more {
				return
			}
		}
	}
}
