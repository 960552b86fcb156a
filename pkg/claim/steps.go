package claim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ReclaimDelay is the time for which a surplus address is still kept, because in a rolling update the next pod takes
// it.
const ReclaimDelay = 15 * time.Second

// Need describes the needs of a claim's workload.
type Need struct {
	// Gone reports whether the workload does not exist, Left whether its pods now draw their addresses elsewhere.
	Gone, Left bool
	// Replicas is the desired number of pods, Start the first ordinal if they are numbered.
	Replicas, Start int
	// Stays is set if the ordinals of the workload's pods are unknown. It reports whether the pod of an address exists
	// and is not terminating.
	Stays func(lease.Lease) bool
}

// Asks reports whether the fate of the addresses depends on the needs of the claim's workload.
func (c Claim) Asks(leases []lease.Lease) bool {
	return c.Release == v1.ReleaseImmutable && c.Workload.Kind != "" && !c.Deleting &&
		slices.ContainsFunc(leases, func(l lease.Lease) bool { return l.State == lease.Reserved })
}

// Abandons reports whether an address is returned because its claim is being deleted. A claim from annotations is
// created again while pods have its addresses, and addresses that they release later are kept by the annotations. The
// time of the deletion has whole seconds: an address released in that second counts as released before.
func (c Claim) Abandons(l lease.Lease) bool {
	return c.Deleting && l.IsRetained() && (!c.Managed || l.Updated.Before(c.DeletedAt.Add(time.Second)))
}

// Step is a change of one kept address.
type Step struct {
	Lease lease.Lease
	// Free returns the address to its pool. Otherwise its term becomes Expires, and with Any an address that was kept
	// for one pod is kept for any.
	Free, Any bool
	Expires   time.Time
	// Why is the reason, for logs and events.
	Why string
}

// Steps decides what happens to the addresses that a claim keeps, at a given time. Addresses in use are never touched.
// If the claim has no workload, or its needs are unknown, need is nil, and no address is freed because of them. The
// pools tell whether an address is still of a pool of the claim. next is the time of the next decision; zero if nothing
// becomes due by itself.
func Steps(
	c Claim, pools allocator.Pools, need *Need, leases []lease.Lease, now time.Time,
) (steps []Step, next time.Time) {
	s := stepper{claim: c, pools: pools, need: need, now: now}
	byKey := map[string][]lease.Lease{}
	for _, l := range leases {
		if l.PodPrimaryKey != "" {
			byKey[l.PodPrimaryKey] = append(byKey[l.PodPrimaryKey], l)
		}
	}
	if need != nil && need.Stays != nil {
		s.stay = c.staying(leases, need)
	}
	groups := map[group][]lease.Lease{}
	active := map[group]int{}
	for _, l := range leases {
		g := groupOf(l)
		if c.Size >= 0 { // of all its addresses of a family
			g = group{family: ipaddr.FamilyOf(l.Addr)}
		}
		switch {
		case l.State == lease.Active:
			active[g]++
		// The next pod cannot have it, and its pool creates the object again.
		case l.State == lease.Reserved && l.Deleting:
			s.free(l, "its object is being deleted")
		case l.State != lease.Reserved || s.decideAlone(l, byKey[l.PodPrimaryKey]):
		default:
			groups[g] = append(groups[g], l)
		}
	}
	for g, kept := range groups {
		s.surplus(kept, active[g])
	}
	slices.SortFunc(s.steps, func(a, b Step) int { return a.Lease.Addr.Compare(b.Lease.Addr) })
	return s.steps, s.next
}

// group identifies the addresses among which each pod of a workload needs one.
type group struct {
	family ipaddr.Family
	ifName string
	slot   int
	keyed  bool
}

func groupOf(l lease.Lease) group {
	return group{ipaddr.FamilyOf(l.Addr), cmp.Or(l.IfName, lease.DefaultIfName), l.Slot, l.PodPrimaryKey != ""}
}

type stepper struct {
	claim Claim
	pools allocator.Pools
	need  *Need
	now   time.Time
	// stay has the ordinals that a workload needs, if they had to be guessed.
	stay  map[int]bool
	steps []Step
	next  time.Time
}

// staying guesses the unknown ordinals of a workload from its addresses: those of existing pods, then the lowest ones
// without a pod, one for each missing pod.
func (c Claim) staying(leases []lease.Lease, need *Need) map[int]bool {
	stay, others := map[int]bool{}, []int{}
	for _, l := range leases {
		switch n, ok := ordinal(l.PodPrimaryKey, c.Workload.Name); {
		case !ok:
		case need.Stays(l):
			stay[n] = true
		case l.State != lease.Active:
			others = append(others, n)
		}
	}
	slices.Sort(others)
	for _, n := range slices.Compact(others) {
		if len(stay) < need.Replicas {
			stay[n] = true
		}
	}
	return stay
}

func (s *stepper) free(l lease.Lease, why string) {
	s.steps = append(s.steps, Step{Lease: l, Free: true, Why: why})
}

// later notes that something becomes due at a time.
func (s *stepper) later(t time.Time) {
	if s.next.IsZero() || t.Before(s.next) {
		s.next = t
	}
}

// decideAlone decides about an address without counting the others, and reports whether it could. sameKey has the
// addresses of the same pod.
func (s *stepper) decideAlone(l lease.Lease, sameKey []lease.Lease) bool {
	c := s.claim
	switch {
	case c.Abandons(l):
		s.free(l, "its claim is being deleted")
	case c.Addresses != nil && !c.Addresses.Contains(l.Addr):
		s.free(l, "it is no longer one of the addresses of its claim")
	case len(c.Pools) > 0 && !s.pools.OfPools(l, c.Pools):
		s.free(l, "its claim is for pool "+strings.Join(c.Pools, ","))
	case c.Release == v1.ReleaseWithPod:
		s.free(l, "its claim keeps no addresses")
	case replaced(l, sameKey):
		s.free(l, "its pod has another")
	case c.Release == v1.ReleaseTimed:
		s.expire(l)
	case l.ExpiredTime != "":
		s.steps = append(s.steps, Step{Lease: l, Why: "its claim keeps it without a term"})
	case c.Release != v1.ReleaseImmutable || s.need == nil:
		return false
	case s.need.Gone && c.Preallocate:
		return l.PodPrimaryKey != "" && s.leave(l, c.Workload.String()+" is gone")
	case s.need.Gone:
		s.free(l, c.Workload.String()+" is gone")
	case s.need.Left:
		return s.leaveAfterDelay(l, "the pods of "+c.Workload.String()+" draw their addresses elsewhere now")
	case l.PodPrimaryKey == "":
		return false
	default:
		return s.scaledDown(l)
	}
	return true
}

// scaledDown frees the address of a numbered pod that the workload no longer wants.
func (s *stepper) scaledDown(l lease.Lease) bool {
	n, ok := ordinal(l.PodPrimaryKey, s.claim.Workload.Name)
	if !ok || s.stay[n] || s.need.Stays == nil && n >= s.need.Start && n < s.need.Start+s.need.Replicas {
		return true // kept
	}
	return s.leaveAfterDelay(l, s.claim.Workload.String()+" was scaled down")
}

// leaveAfterDelay calls leave if the address has not changed for ReclaimDelay.
func (s *stepper) leaveAfterDelay(l lease.Lease, why string) bool {
	if at := l.Updated.Add(ReclaimDelay); at.After(s.now) {
		s.later(at)
		return true
	}
	return s.leave(l, why)
}

// leave frees the address of a pod that will not return; a preallocating claim keeps it for any pod.
func (s *stepper) leave(l lease.Lease, why string) bool {
	if s.claim.Preallocate {
		s.steps = append(s.steps, Step{Lease: l, Any: true, Why: why})
	} else {
		s.free(l, why)
	}
	return true
}

// expire sets the term of an address, or frees it after its term.
func (s *stepper) expire(l lease.Lease) {
	at := l.Updated.Add(s.claim.Keep)
	switch told, err := time.Parse(time.RFC3339Nano, l.ExpiredTime); {
	case !at.After(s.now):
		s.free(l, "it was kept for "+explain.FormatSpan(s.claim.Keep))
	case err != nil || !told.Equal(at):
		s.steps = append(s.steps, Step{Lease: l, Expires: at, Why: "it is kept for " +
			explain.FormatSpan(s.claim.Keep)})
		s.later(at)
	default:
		s.later(at)
	}
}

// surplus frees kept addresses beyond the needs of the workload and the size of the claim, the longest unused first.
// Addresses in use count, and stay.
func (s *stepper) surplus(kept []lease.Lease, active int) {
	allowed := -1
	if s.claim.Size >= 0 {
		allowed = s.claim.Size
	} else if !s.claim.Preallocate && s.claim.Release == v1.ReleaseImmutable && s.need != nil &&
		kept[0].PodPrimaryKey == "" {
		allowed = s.need.Replicas
	}
	if allowed < 0 {
		return
	}
	if s.claim.KeepsAll() {
		s.overtaken(kept, active)
		return
	}
	slices.SortFunc(kept, func(a, b lease.Lease) int {
		return cmp.Or(a.Updated.Compare(b.Updated), a.Addr.Compare(b.Addr))
	})
	s.freeAfterDelay(kept[:min(len(kept), max(0, len(kept)+active-allowed))],
		"its claim has more addresses than it needs")
}

// overtaken frees addresses that concurrent preallocations took beyond the size of the claim. Of the addresses that no
// pod ever had, it frees those that were written last. Addresses that were taken for an earlier, larger size are not
// surplus.
func (s *stepper) overtaken(kept []lease.Lease, active int) {
	allowed := s.claim.Size
	var unused []lease.Lease
	for _, l := range kept {
		if size, ok := allocator.TakenFor(l); ok {
			allowed, unused = max(allowed, size), append(unused, l)
		}
	}
	slices.SortFunc(unused, func(a, b lease.Lease) int { return cmp.Compare(b.Version, a.Version) })
	s.freeAfterDelay(unused[:min(len(unused), max(0, len(kept)+active-allowed))],
		"it was taken beyond the size of its claim")
}

// freeAfterDelay frees addresses that have not changed for ReclaimDelay.
func (s *stepper) freeAfterDelay(all []lease.Lease, why string) {
	for _, l := range all {
		if at := l.Updated.Add(ReclaimDelay); at.After(s.now) {
			s.later(at)
			continue
		}
		s.free(l, why)
	}
}

// replaced reports whether the pod of an address has another one, or had another one later.
func replaced(l lease.Lease, sameKey []lease.Lease) bool {
	return slices.ContainsFunc(sameKey, func(o lease.Lease) bool {
		return o.Addr != l.Addr && groupOf(o) == groupOf(l) &&
			(o.State == lease.Active || o.Updated.After(l.Updated) || o.Updated.Equal(l.Updated) && o.Addr.Less(l.Addr))
	})
}

// ordinal returns the number of a pod from its key <workload>-<n>, with or without a namespace before it.
func ordinal(key, workload string) (n int, ok bool) {
	_, name, found := strings.Cut(key, "/")
	if !found {
		name = key
	}
	text, ok := strings.CutPrefix(name, workload+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}
