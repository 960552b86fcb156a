package allocator

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// resolve finds the pod of a request and its constraints: whom addresses are held for, and on which terms. A refusal by
// policy is kept in the attempt: it blocks new addresses, not those that are held already.
func (a *Adder) resolve(ctx context.Context, t *attempt) error {
	t.holder = lease.Holder{
		Host: t.Host, ContainerID: t.ContainerID, IfName: t.IfName,
		Namespace: t.Namespace, PodName: t.PodName, Owner: t.Owner, StartedAt: t.StartedAt,
		CNINetwork: t.CNINetwork,
	}
	if t.Owner != "" {
		return ownerOfHost(t.Owner, t.OnHosts)
	}
	end := a.engine.leases.Begin(ctx, store.StagePod)
	pod, err := a.engine.pods.Find(ctx, t.Namespace, t.PodName, t.PodUID, t.Host)
	if err == nil && !a.engine.pods.On(pod, t.OnHosts) { // the cache may be older than the pod's binding
		pod, err = a.engine.pods.FindLive(ctx, t.Namespace, t.PodName, t.PodUID)
	}
	end(err)
	if err := unfit(t.Request, pod, err); err != nil {
		return err
	}
	if !a.engine.pods.On(pod, t.OnHosts) {
		return ipam.Refuse(ipam.ReasonNotPermitted, "pod %s/%s is on node %q, which is not the one that asks",
			t.Namespace, t.PodName, pod.Node).WithHint("a node may ask only for its own pods")
	}
	h := &t.holder
	h.PodUID, h.UIDNamed, h.Termination, t.podVersion = pod.UID, t.PodUID != "", pod.LongTermination(), pod.Version
	if a.constraints == nil {
		return nil
	}
	pod = pod.At(t.IfName, t.Network)
	pod.Asks = workload.Asked{Addrs: t.Addrs, Families: t.Families}
	if t.constraints, err = a.constraints.Of(ctx, pod); err == nil {
		t.refused = t.agree()
		return nil
	}
	var refused bool
	if t.refused, refused = errors.AsType[*ipam.Refusal](err); !refused {
		return readFailed(err)
	}
	return nil
}

// unfit refuses a request whose pod gets no address.
func unfit(r Request, pod workload.Pod, err error) error {
	switch {
	case errors.Is(err, workload.ErrNotFound) && pod.UID != "":
		return ipam.Refuse(ipam.ReasonPodReplaced, "pod %s/%s has UID %s, the request is for %s", r.Namespace,
			r.PodName, pod.UID, r.PodUID)
	case errors.Is(err, workload.ErrNotFound):
		return ipam.Refuse(ipam.ReasonPodNotFound, "pod %s/%s does not exist", r.Namespace, r.PodName)
	case err != nil:
		return readFailed(err)
	case pod.Ended:
		return ipam.Refuse(ipam.ReasonPodEnded, "pod %s/%s has ended", r.Namespace, r.PodName)
	}
	return nil
}
