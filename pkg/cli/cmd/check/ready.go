package check

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/pager"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// leaseLag is the time for which a running pod may lack a lease before that is a finding.
const leaseLag = 3 * time.Second

// eventPolls is the number of polls per reading of events, of which a namespace may have thousands.
const eventPolls = 4

// awaitReady waits for --timeout at most, until each pod runs with an address or has failed for good.
func (r *run) awaitReady(ctx context.Context) error {
	r.Say.Wait("waiting until they run with an address")
	within, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	waiting := r.running()
	trouble, polls := map[types.UID]*trouble{}, 0
	err := wait.PollUntilContextCancel(within, pollEvery, true, func(ctx context.Context) (bool, error) {
		pods, err := r.pods(ctx)
		if err != nil {
			return false, err
		}
		leases, err := r.leasesOf(ctx, waiting, pods)
		if err != nil {
			return false, err
		}
		if polls++; polls%eventPolls == 0 {
			if trouble, err = r.troubles(ctx); err != nil {
				return false, err
			}
		}
		var left []*target
		for _, t := range waiting {
			if !r.judge(t, pods[t.uid], leases[t.Pod], trouble[t.uid]) {
				left = append(left, t)
			}
		}
		waiting = left
		return len(waiting) == 0, nil
	})
	if ctx.Err() != nil || err != nil && within.Err() == nil {
		return cmp.Or(ctx.Err(), err)
	}
	for _, t := range waiting {
		if x := trouble[t.uid]; x != nil {
			x.fail(t)
		} else {
			t.fail(nodecheck.CheckPod, "see whether the kubelet of the node runs: kubectl describe node "+t.Name,
				"the pod does not run after %s, and no event says why", r.timeout)
		}
	}
	if n := len(r.running()); n > 0 {
		r.Say.Done("%d of %s: a pod runs with an address", n, humanize.Plural(len(r.targets), "node"))
	}
	return nil
}

// judge evaluates the state of one pod. It returns true if the pod is ready or has failed for good.
func (r *run) judge(t *target, pod *corev1.Pod, leases []lease.Lease, x *trouble) bool {
	switch why := hopeless(pod); {
	case why != "":
		t.fail(nodecheck.CheckPod, fixOf(why), "%s", why)
		return true
	case x.final():
		x.fail(t)
		return true
	case !isServing(pod):
		return false
	}
	now := r.Now()
	if t.startedAt.IsZero() {
		t.startedAt = now
	}
	if len(leases) == 0 {
		if now.Sub(t.startedAt) < leaseLag {
			return false
		}
		t.fail(nodecheck.CheckAddress,
			"see the CNI configuration in /etc/cni/net.d of the node: the first one counts, and "+
				"its ipam is to be bcsnet-ipam", "its pod runs with %s, which is of no pool: another plugin gave it",
			podIPs(pod))
		return true
	}
	for _, l := range leases {
		t.Addrs = append(t.Addrs, nodecheck.Address{Addr: l.Addr, Pool: l.Pool, Gateway: l.UsedGateway()})
	}
	t.ReadyIn = now.Sub(t.created)
	return true
}

// pods returns the pods of this run by UID.
func (r *run) pods(ctx context.Context) (map[types.UID]*corev1.Pod, error) {
	out := map[types.UID]*corev1.Pod{}
	return out, r.eachPod(ctx, ours(labelRun)+"="+r.id, func(pod *corev1.Pod) { out[pod.UID] = pod })
}

// eachPod reads the pods of the namespace that match a selector, page by page.
func (r *run) eachPod(ctx context.Context, selector string, do func(*corev1.Pod)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.core.Pods(r.in.Name).List(ctx, o)
	})
	pages.PageSize = resource.PageSize
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(o runtime.Object) error {
		if pod, is := o.(*corev1.Pod); is {
			do(pod)
		}
		return nil
	})
}

// leasesOf reads the leases if a pod of one of the nodes runs.
func (r *run) leasesOf(
	ctx context.Context, targets []*target, pods map[types.UID]*corev1.Pod,
) (map[string][]lease.Lease, error) {
	for _, t := range targets {
		if pod := pods[t.uid]; pod != nil && isServing(pod) {
			return r.leases(ctx)
		}
	}
	return nil, nil
}

// leases returns the leases of this run's pods by the pods' names.
func (r *run) leases(ctx context.Context) (map[string][]lease.Lease, error) {
	ours := map[string]bool{}
	for _, t := range r.targets {
		ours[t.Pod] = t.Pod != ""
	}
	held, err := resource.HeldLeases(ctx, r.App, resource.LeaseQuery{Namespace: r.in.Name,
		Status: lease.Active.String()},
		func(l lease.Lease) bool { return ours[l.PodName] && l.Namespace == r.in.Name })
	out := map[string][]lease.Lease{}
	for _, l := range held {
		out[l.PodName] = append(out[l.PodName], l)
	}
	return out, err
}
