package cleanup

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// fate is what is known of the holder of a lease.
type fate uint8

const (
	isGone fate = iota
	// isKept: a claim keeps the address, and nobody has it.
	isKept
	// lives: the pod is there, or may be.
	lives
	// mayRun: the pod is no more, and its containers may run all the same.
	mayRun
	// noPod: an owner that is no pod, or a container of an unknown pod.
	noPod
	// unknown: the pod could not be read.
	unknown
)

// finding is a lease, and what is known of its holder.
type finding struct {
	lease.Lease
	fate  fate
	check gone.Check
	// why says more of the holder.
	why string
}

// judgement sorts leases into those to end, and those that stay.
type judgement struct {
	ends, stays []finding
	again       leasing.Recheck
}

func (j *judgement) leases() (out []lease.Lease) {
	for _, f := range j.ends {
		out = append(out, f.Lease)
	}
	return out
}

// judge takes a first look at the pods and hosts of leases.
func (v *cleanup) judge(ctx context.Context, held []lease.Lease) (*judgement, error) {
	j := &judgement{again: leasing.Recheck{
		App: v.App, Leases: v.leases, First: v.leases.Now(), Between: v.between,
	}}
	pods, err := v.podsOf(ctx, held)
	unread := resource.Explain(v.App, err)
	if unread != nil && !v.force {
		return nil, fmt.Errorf("nothing is released, as it is not known whether the holders still exist: %w", unread)
	}
	nodes, err := v.hosts(ctx)
	if err != nil && !v.force {
		return nil, fmt.Errorf("nothing is released: whether the hosts are ready is unknown: %w", err)
	}
	for _, l := range held {
		f, err := v.judgeOne(ctx, j.again, l, held, pods, nodes, unread)
		if err != nil {
			return nil, err
		}
		ends := f.fate == isGone || f.fate != isKept && v.force || f.fate == isKept && v.kept
		switch {
		case ends:
			j.ends = append(j.ends, f)
		default:
			j.stays = append(j.stays, f)
		}
	}
	return j, nil
}

// judgeOne judges the holder of one lease. Of very many leases it compares each with the others alone, and asks the API
// server for none: what that misses is left alone.
func (v *cleanup) judgeOne(
	ctx context.Context, again leasing.Recheck, l lease.Lease, held []lease.Lease,
	pods map[types.NamespacedName]*workload.Pod,
	nodes *hosts.Table, unread error,
) (finding, error) {
	f := finding{Lease: l}
	switch {
	case l.State == lease.Reserved:
		f.fate, f.why = isKept, resource.RetainedText(l)
		return f, nil
	case l.Owner != "":
		f.fate, f.why = noPod, "the holder is no pod"
		return f, nil
	case l.PodName == "":
		f.fate, f.why = noPod, "its pod is unknown"
		return f, nil
	case unread != nil:
		f.fate, f.why = unknown, "whether the pod lives is unknown: "+unread.Error()
		return f, nil //nolint:nilerr // the finding says so
	}
	pod := pods[types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}]
	others := func(lease.Lease, string) []lease.Lease { return held }
	if len(held) < manyPods {
		var err error
		if others, err = resource.SameName(ctx, v.App, l, pod); err != nil {
			return f, err
		}
	}
	switch d := again.Decide(l, pod, others, gone.HostOf(nodes.At(l.Host))); {
	case d.Check == gone.PodOtherAddress:
		f.fate, f.why = lives, d.Cause
	case d.Check == "":
		f.fate, f.why = lives, "its pod lives"
	case d.Verdict != gone.Gone:
		f.fate, f.check, f.why = mayRun, d.Check, d.Cause+", and its containers may still run: "+d.Doubt
	default:
		f.fate, f.check, f.why = isGone, d.Check, d.Cause
	}
	return f, nil
}

// manyPods is from how many leases on the pods of all namespaces are listed, and not read one by one.
const manyPods = 512

// podsOf reads the pods of leases.
func (v *cleanup) podsOf(ctx context.Context, held []lease.Lease) (map[types.NamespacedName]*workload.Pod, error) {
	defer v.Say.WaitLater("reading pods")()
	pods := map[types.NamespacedName]*workload.Pod{}
	if len(held) >= manyPods {
		all, err := resource.AllPods(ctx, v.App)
		for _, p := range all {
			pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = &p
		}
		return pods, err
	}
	found := make([]*workload.Pod, len(held))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(resource.AtOnce)
	for i, l := range held {
		if resource.OfPod(l) {
			group.Go(func() error {
				pod, err := resource.ReadPod(ctx, v.App, l)
				found[i] = pod.Pod
				return err
			})
		}
	}
	err := group.Wait()
	for i, l := range held {
		pods[types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}] = found[i]
	}
	return pods, err
}

// hosts reads the nodes.
func (v *cleanup) hosts(ctx context.Context) (*hosts.Table, error) {
	nodes, err := resource.ListNodes(ctx, v.App)
	return resource.Table(nodes), err
}

// of counts the findings of a fate.
func of(all []finding, fates ...fate) (n int) {
	for _, f := range all {
		if slices.Contains(fates, f.fate) {
			n++
		}
	}
	return n
}

// refused returns the error for an endpoint that is not gone.
func (j *judgement) refused(v *cleanup) error {
	f := j.stays[0]
	if f.fate == isKept {
		return app.Refuse(app.ReasonAddressKept, "address %s of pool %s is not in use: %s", f.Addr, f.Pool, f.why).
			WithHint("to give it back to its pool: bcsnetctl cleanup %s --kept", v.title())
	}
	reason := app.ReasonPodLives
	if f.fate == noPod { // whether it is gone nobody can look up
		reason = app.ReasonHolderUnverified
	}
	refusal := app.Refuse(reason, "address %s of pool %s is held by %s: %s", f.Addr, f.Pool, f.Where(), f.why)
	if f.fate == mayRun {
		return refusal.WithHint("the controller frees it once nobody surely has it; to end it at once: "+
			"bcsnetctl cleanup %s --force", v.title())
	}
	return refusal.WithHint("to end it all the same: bcsnetctl cleanup %s --force", v.title())
}
