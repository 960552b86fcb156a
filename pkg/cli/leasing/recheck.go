package leasing

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Recheck is the second of two looks at leases whose holders seemed to be gone at the first. Package gone decides; what
// is known here is what the API server says of pods and nodes at both looks, and the time between them.
type Recheck struct {
	App    *app.App
	Leases *store.Client
	resource.Looks
}

// Wait lets the time go by that is between the two looks at the pods of what.
func (r Recheck) Wait(ctx context.Context, what string) error {
	if r.Between == 0 {
		return nil
	}
	r.App.Say.Wait("waiting %s before a second look at the pods of %s", r.Between, what)
	select {
	case <-time.After(r.Between):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release reads the pod of a lease once more, and releases the address where it is still gone for the same reason as
// at the first look; free also takes it from the claim that would keep it. kept is why the address was left alone. In a
// dry run on the client nothing is sent.
func (r Recheck) Release(
	ctx context.Context, l lease.Lease, check gone.Check, host gone.Host, change lease.Change, free bool,
) (kept string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	pod, err := resource.ReadPod(ctx, r.App, l)
	if err != nil {
		return "", err
	}
	others, err := resource.SameName(ctx, r.App, l, pod.Pod)
	if err != nil {
		return "", err
	}
	d := r.Decide(gone.Evidence{
		Lease: l, Pod: pod.Pod, Live: true, Others: others, Now: r.Leases.Now(), Host: host,
	})
	switch {
	case d.Check != check:
		return "pod " + l.Who() + " is there and may use it", nil
	case d.Verdict != gone.Gone:
		return "its containers may still run: " + d.Doubt, nil
	case r.App.DryRun == app.DryRunClient:
		return "", nil
	}
	give := allocator.ReleaseLease
	if free {
		give = allocator.FreeLease
	}
	// What ends one attachment changes since when the other one has the address, and both may end in one call.
	still := func(now lease.Lease) bool { return l.SameHolding(now) || l.Other != nil && sameHolder(now, l) }
	released, err := give(ctx, r.Leases, l, change, still)
	if err == nil && !released {
		kept = "somebody else has changed it"
	}
	return kept, err
}
