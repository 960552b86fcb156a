// Package workload knows pods: who asks for an address, and whether it still does.
package workload

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// ErrNotFound says that there is no such pod.
var ErrNotFound = errors.New("there is no such pod")

// Pod is what the allocator needs to know of a pod.
type Pod struct {
	Namespace, Name, UID string
	// Node that the pod is bound to; empty before it is.
	Node string
	// HostIPs are the addresses that the pod's status gives for its host; empty until the kubelet reports.
	HostIPs []netip.Addr
	// Ended: the pod is Succeeded or Failed. Deleting: it has a deletionTimestamp.
	Ended, Deleting bool
}

// FromObject reads a pod.
func FromObject(p *corev1.Pod) Pod {
	pod := Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		Ended:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Deleting: p.DeletionTimestamp != nil,
	}
	for _, ip := range p.Status.HostIPs {
		if a, err := ipam.ParseAddr(ip.IP); err == nil {
			pod.HostIPs = append(pod.HostIPs, a)
		}
	}
	return pod
}

// Trim is a pod with no more than FromObject reads: what a cache of all pods should keep.
func Trim(p *corev1.Pod) *corev1.Pod {
	t := &corev1.Pod{}
	t.Namespace, t.Name, t.UID, t.ResourceVersion = p.Namespace, p.Name, p.UID, p.ResourceVersion
	t.DeletionTimestamp = p.DeletionTimestamp
	t.Spec.NodeName = p.Spec.NodeName
	t.Status.Phase, t.Status.HostIPs = p.Status.Phase, p.Status.HostIPs
	return t
}

// Pods finds pods.
type Pods struct {
	// Cached reads from a watch cache, Live from the API server.
	Cached, Live client.Reader
	// NodeAddrs are the addresses of a node, as far as is known.
	NodeAddrs func(node string) []netip.Addr
}

// Find returns the pod that a request from host is about. The cache answers only where it cannot be
// mistaken: for the pod UID of the request, or, when the request names none, for a pod on that host
// that has neither ended nor is being deleted. Everything else is one read from the API server. The
// error is ErrNotFound when there is no such pod, or when its UID is not the request's (the pod that
// was found instead is returned with it).
func (p *Pods) Find(ctx context.Context, namespace, name, uid string, host netip.Addr) (Pod, error) {
	var o corev1.Pod
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := p.Cached.Get(ctx, key, &o); err == nil {
		if pod := FromObject(&o); p.trusted(pod, uid, host) {
			return pod, nil
		}
	}
	return p.FindLive(ctx, namespace, name, uid)
}

// FindLive is Find without the cache.
func (p *Pods) FindLive(ctx context.Context, namespace, name, uid string) (Pod, error) {
	var o corev1.Pod
	err := p.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return Pod{}, ErrNotFound
	case err != nil:
		return Pod{}, fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	pod := FromObject(&o)
	if uid != "" && pod.UID != uid {
		return pod, ErrNotFound
	}
	return pod, nil
}

func (p *Pods) trusted(pod Pod, uid string, host netip.Addr) bool {
	if pod.Ended {
		return false
	}
	if uid != "" {
		return pod.UID == uid
	}
	return !pod.Deleting && pod.Node != "" &&
		(slices.Contains(pod.HostIPs, host) || slices.Contains(p.NodeAddrs(pod.Node), host))
}
