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

// Recheck is the second check of leases whose holders seemed to be gone. Package gone decides, from pods and nodes at
// both checks and the time between them.
type Recheck struct {
	App    *app.App
	Leases *store.Client
	resource.Looks
}

// Wait waits for the time between the two checks.
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

// Release reads the pod of a lease again, and releases the address if the pod is still gone for the same reason. free
// also takes the address from the claim that would keep it. kept says why the address was left alone. With
// --dry-run=client it sends nothing.
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
	d := r.Decide(gone.Evidence{Lease: l, Pod: pod.Pod, Live: true, Others: others, Now: r.Leases.Now(), Host: host})
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
	// Releasing one attachment changes the lease of the other one, and one call may release both.
	still := func(now lease.Lease) bool { return l.SameHolding(now) || l.Other != nil && sameHolder(now, l) }
	released, err := give(ctx, r.Leases, l, change, still)
	if err == nil && !released {
		kept = "somebody else has changed it"
	}
	return kept, err
}
