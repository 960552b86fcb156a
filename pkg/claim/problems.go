package claim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Problem is a reason why a claim cannot fulfil its spec, whatever its pods do.
type Problem struct{ Reason, Message string }

const (
	// maxLooked is the maximum of a claim's addresses of a family for which holders are looked up.
	maxLooked = 4096
	// maxParties is the maximum of other parties that a problem names.
	maxParties = 3
)

// Others has the objects and settings that affect a claim.
type Others struct {
	// Rivals are other claims with the addresses that they name.
	Rivals map[string]*netipx.IPSet
	// DuplicateOwners are other claims that somebody created for its workload. Above is the workload that controls its
	// workload; zero for none.
	DuplicateOwners []string
	Above           workload.Workload
	// System is the namespace of the claims of shared pools.
	System string
	// SharedForAll reports whether shared pools are for all namespaces.
	SharedForAll bool
}

// Problems returns the reasons why a claim cannot fulfil its spec, the most severe first: its addresses are in no pool,
// another claim names them, other holders have them, its pools are too small, or no pod finds it or may use it.
func Problems(c Claim, x *index.Index, o Others) []Problem {
	if c.Deleting {
		return nil
	}
	all := c.unsupplied(x, o)
	add := func(reason, format string, args ...any) {
		all = append(all, Problem{reason, fmt.Sprintf(format, args...)})
	}
	finder := c.namespace
	if o.SharedForAll {
		finder = o.System
	}
	if found := finder + "/" + workload.SharedClaim(c.SharedName); c.SharedName != "" && c.Name != found {
		add(v1.ReasonSharedNameElsewhere, "pods that name the shared pool %s use claim %s, not this one", c.SharedName,
			found)
	}
	if o.Above.Kind != "" {
		add(
			v1.ReasonOwnerControlled,
			"%s belongs to %s, and its pods draw from the claims of that: spec.owner has to name it",
			c.Workload, o.Above)
	}
	if len(o.DuplicateOwners) > 0 {
		add(v1.ReasonOwnerShared, "%s %s for %s, too: a pod draws from one, which an annotation has to name",
			humanize.List(o.DuplicateOwners), humanize.OneOr(len(o.DuplicateOwners), "is", "are"), c.Workload)
	}
	return all
}

// unsupplied returns the problems with the addresses that the claim may have.
func (c Claim) unsupplied(x *index.Index, o Others) (all []Problem) {
	add := func(reason, format string, args ...any) {
		all = append(all, Problem{reason, fmt.Sprintf(format, args...)})
	}
	for _, name := range c.Pools {
		if _, ok := x.Pools.Get(name); !ok {
			add(v1.ReasonPoolNotFound, "there is no pool %s", name)
			return all
		}
	}
	if c.Addresses == nil {
		if n, pools := x.Capacity(ipam.PickRequest{Ahead: true, Pools: c.Pools}, c.drawsFor(o.System)); c.Size > 0 &&
			uint64(c.Size) > n {
			add(v1.ReasonLargerThanPools, "it may have %s of a family, and its pools have %s in all",
				humanize.Plural(c.Size, "address"), supply(n, pools))
		}
		return all
	}
	if outside := x.Pools.Outside(c.Addresses, c.Pools); ipaddr.SizeOfSet(outside) > 0 {
		where := "in no pool"
		if len(c.Pools) > 0 {
			where = "not in pool " + strings.Join(c.Pools, ",")
		}
		add(string(ipam.ReasonAddressNotInPool), "%s %s %s", ipaddr.FormatSet(outside),
			humanize.OneOr(ipaddr.SizeOfSet(outside), "is", "are"), where)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Rivals)) {
		if both := ipaddr.Intersect(c.Addresses, o.Rivals[name]); ipaddr.SizeOfSet(both) > 0 {
			add(v1.ReasonAddressesShared, "claim %s names %s, too", name, ipaddr.FormatSet(both))
		}
	}
	return append(all, slices.Concat(c.tooFew(x, ipaddr.IPv4), c.tooFew(x, ipaddr.IPv6))...)
}

// tooFew returns the problems with the addresses of a family that the claim names: they are fewer than the claim may
// have of each family, or others hold too many of them.
func (c Claim) tooFew(x *index.Index, f ipaddr.Family) (all []Problem) {
	named := ipaddr.OfFamily(c.Addresses, f)
	have, family := ipaddr.SizeOfSet(named), ""
	if have == 0 {
		return nil
	}
	if have < ipaddr.SizeOfSet(c.Addresses) {
		family = " of " + f.String()
	}
	if c.Size > 0 && uint64(c.Size) > have {
		all = append(all, Problem{
			v1.ReasonLargerThanPools, fmt.Sprintf("it may have %s of a family, and names %d%s",
				humanize.Plural(c.Size, "address"), have, family),
		})
	}
	if taken, by := c.takenByOthers(x, named); taken > 0 && (c.Size < 0 || uint64(c.Size)+taken > have) {
		all = append(all, Problem{string(ipam.ReasonAddressInUse), by})
	}
	return all
}

// takenByOthers returns the number of the claim's addresses that other holders have, and describes the first of them.
func (c Claim) takenByOthers(x *index.Index, mine *netipx.IPSet) (n uint64, by string) {
	if ipaddr.SizeOfSet(mine) > maxLooked {
		return 0, ""
	}
	var named []string
	for _, r := range mine.Ranges() {
		for a := r.From(); r.Contains(a); a = a.Next() {
			l, ok := x.Leases.Get(a)
			if !ok || l.State == lease.Available || l.Claim == c.Name {
				continue
			}
			n++
			text := "is set aside by hand"
			switch {
			case l.State == lease.Active && l.Claim != "":
				text = "is held by " + l.Who() + " of claim " + l.Claim
			case l.State == lease.Active:
				text = "is held by " + l.Who()
			case l.Claim != "":
				text = "is kept for claim " + l.Claim
			case l.IsQuarantined():
				text = "is quarantined, as " + l.Conflict.MAC + " answered for it"
			}
			if len(named) < maxParties {
				named = append(named, a.String()+" "+text)
			}
		}
	}
	if more := n - uint64(len(named)); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return n, strings.Join(named, ", ")
}

func supply(n uint64, pools []string) string {
	if len(pools) == 0 {
		return "none (no pool serves it)"
	}
	return fmt.Sprintf("%d (%s)", n, humanize.List(pools))
}
