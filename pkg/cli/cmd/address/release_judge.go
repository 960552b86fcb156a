package address

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// fate is the state of an address's holder.
type fate uint8

const (
	isGone fate = iota
	// lives: the pod exists, or may exist.
	lives
	// mayRun: the pod is gone, but its containers may still run.
	mayRun
	// hasObject: the owner is an object, such as a claim of Cluster API, that exists.
	hasObject
	// noPod: the holder is an owner or a container of an unknown pod.
	noPod
	// unread: the pod could not be read.
	unread
	// isKept: nobody has the address, which is kept by a claim or quarantined.
	isKept
	// isReserved: an operator set it aside.
	isReserved
	isFree
)

// finding is an address with the state of its holder.
type finding struct {
	lease.Lease
	fate   fate
	pod    resource.PodState
	object resource.OwnerState
	err    error
}

// judgement separates the addresses to release, those to leave alone, and those that are free already.
type judgement struct {
	ends, stays, free []finding
	again             leasing.Recheck
}

func leasesOf(findings []finding) (out []lease.Lease) {
	for _, f := range findings {
		out = append(out, f.Lease)
	}
	return out
}

// judge checks the pods of leases. For a selection this is the first of two checks.
func (v *ipRelease) judge(ctx context.Context, all []lease.Lease) *judgement {
	j := &judgement{again: leasing.Recheck{App: v.App, Leases: v.leases}}
	if v.by != nil {
		j.again.Looks = resource.Looks{First: v.leases.Now(), Between: v.settle, Side: true}
	}
	pods, failed := j.again.PodStates(ctx, v.App, all)
	objects := resource.OwnerStates(ctx, v.App, all)
	for i, l := range all {
		f := finding{Lease: l, pod: pods[i], object: objects[l.Owner], err: failed[i]}
		f.err = cmp.Or(f.err, f.object.Unread)
		switch {
		case l.State == lease.Available:
			f.fate = isFree
		case l.IsRetained(), l.IsQuarantined() && v.by == nil:
			f.fate = isKept
		case l.State == lease.Reserved:
			f.fate = isReserved
		case f.err != nil:
			f.fate = unread
		case f.object.Exists:
			f.fate = hasObject
		case f.pod.Lives:
			f.fate = lives
		case f.pod.MayRun:
			f.fate = mayRun
		case f.pod.Text == "":
			f.fate = noPod
		}
		switch {
		case f.fate == isFree:
			j.free = append(j.free, f)
		case v.mayEnd(f.fate):
			j.ends = append(j.ends, f)
		default:
			j.stays = append(j.stays, f)
		}
	}
	return j
}

// mayEnd reports whether an address may be released. Naming an address permits more than selecting it.
func (v *ipRelease) mayEnd(f fate) bool {
	switch f {
	case isGone:
		return true
	case isKept:
		return v.by == nil || v.kept
	case noPod:
		return v.by == nil || v.force
	case isReserved:
		return false
	default:
		return v.force
	}
}

// check announces what will be released. Before anything is written, it refuses named addresses that must not be
// released; selected ones are left alone. It also fails if the pod of a selected lease cannot be read.
func (v *ipRelease) check(ctx context.Context, j *judgement) error {
	var failed app.Several
	if v.by == nil || v.by.single && len(j.ends) == 0 {
		for _, f := range j.stays {
			failed = append(failed, v.refusal(f))
		}
	} else if i := first(j.stays, unread); i >= 0 {
		return fmt.Errorf("nothing is released, because it is unknown whether the holders still exist: %w",
			j.stays[i].err)
	}
	unknown, err := v.known(ctx, j.free)
	if err != nil {
		return err
	}
	if failed = append(failed, unknown...); len(failed) > 0 {
		all := len(j.ends) + len(j.stays) + len(j.free)
		if live := losers(j.stays); len(live) > 1 {
			v.Say.Warn("%d of the %s are of pods that live: %s", len(live), humanize.Plural(all, "address"),
				humanize.List(live))
		}
		return resource.NoneDone(v.App, all, "released", failed)
	}
	v.announce(j)
	return nil
}

func (v *ipRelease) refusal(f finding) error {
	again := "bcsnetctl ip release " + f.Addr.String()
	if v.by != nil {
		again = "bcsnetctl ip release --" + v.by.name + " " + v.word
	}
	text := fmt.Sprintf("address %s is held by %s", f.Addr, v.holders(f.Lease))
	switch f.fate {
	case isReserved:
		return app.Refuse(app.ReasonAddressReserved, "address %s is reserved: nobody holds it", f.Addr).
			WithHint("to end the reservation: bcsnetctl ip unreserve %s", f.Addr)
	case isKept:
		return app.Refuse(app.ReasonAddressKept, "address %s of pool %s is not in use: %s", f.Addr, f.Pool,
			resource.RetainedText(f.Lease)).WithHint("to return it to its pool: %s --kept", again)
	case unread:
		return fmt.Errorf("whether the holder of %s lives is unknown: %w", f.Addr, f.err)
	case hasObject:
		o := f.object
		return app.Refuse(app.ReasonObjectExists, "%s, and the %s %s", text, o.What(), o.Text).
			WithHint("delete it, and the address is released: kubectl -n %s delete %s %s", o.Namespace,
				strings.ToLower(o.What()), o.Name)
	case noPod: // nobody can check whether it is gone
		return app.Refuse(app.ReasonHolderUnverified, "%s, which is not a pod", text).
			WithHint("to release it all the same: %s --force", again)
	case lives:
		return app.Refuse(app.ReasonPodLives, "%s, and the pod %s", text, f.pod.Text).
			WithHint("delete the pod, and the address is released; to take it from the running pod: %s --force", again)
	default:
		return app.Refuse(app.ReasonPodLives, "%s; the pod %s", text, f.pod.Text).
			WithHint("the controller releases it as soon as no container can use it; to release it at once: %s --force",
				again)
	}
}

// known refuses addresses without an object that are in no pool: they are misspelt.
func (v *ipRelease) known(ctx context.Context, free []finding) (failed app.Several, err error) {
	var x *index.Index
	var outside []netip.Addr
	var why *ipam.Refusal
	for _, f := range free {
		if f.Version != 0 {
			continue
		}
		if x == nil {
			if x, err = resource.PoolIndex(ctx, v.App); err != nil {
				return nil, err
			}
		}
		if pool, refusal := x.Candidate(f.Addr, v.Now()); pool.Name == "" {
			outside, why = append(outside, f.Addr), refusal
		}
	}
	return leasing.NoPool(outside, why), nil
}

// distinct returns the addresses of leases without duplicates: both pods of a migrating virtual machine have the same
// address.
func distinct(leases []lease.Lease) (addrs []netip.Addr) {
	for _, l := range leases {
		addrs = append(addrs, l.Addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}
