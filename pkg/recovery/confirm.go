package recovery

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// listFrom is from how many leases of one pool, or pods of one namespace, they are listed and not read singly.
	listFrom = 16
	// podPage is the number of pods that a page of a list has.
	podPage = 500
)

// confirm asks the API server which pods really have an address that nobody holds: the caches of pods and of leases are
// of different moments. It costs at most listFrom reads for each pool and namespace, or the pages of a list.
func (c *Checker) confirm(ctx context.Context, all []lease.Lease) (map[netip.Addr]bool, error) {
	leases, err := c.liveLeases(ctx, all)
	if err != nil {
		return nil, err
	}
	pods, err := c.livePods(ctx, all)
	if err != nil {
		return nil, err
	}
	confirmed := map[netip.Addr]bool{}
	for _, l := range all {
		pod, there := pods[podOf(l)]
		live := leases[l.Addr]
		confirmed[l.Addr] = there && (l.PodUID == "" || pod.UID == l.PodUID) && live.State == lease.Available &&
			!pod.Ended && !pod.Deleting && slices.Contains(pod.Addrs, l.Addr) && !GaveUp(live, pod)
	}
	return confirmed, nil
}

// liveLeases reads addresses from the API server; those without an object are missing.
func (c *Checker) liveLeases(ctx context.Context, all []lease.Lease) (map[netip.Addr]lease.Lease, error) {
	return readGroups(all,
		func(l lease.Lease) string { return l.Pool }, func(l lease.Lease) netip.Addr { return l.Addr },
		func(a netip.Addr) (lease.Lease, bool, error) {
			l, err := c.Leases.Get(ctx, a)
			if errors.Is(err, store.ErrNotFound) {
				return l, false, nil
			}
			return l, true, err
		},
		func(pool string, found func(netip.Addr, lease.Lease)) error {
			return c.Leases.Each(ctx, "spec.pool="+pool, func(l lease.Lease) error {
				found(l.Addr, l)
				return nil
			})
		})
}

// livePods reads the pods of leases from the API server; those that are gone are missing.
func (c *Checker) livePods(ctx context.Context, all []lease.Lease) (map[types.NamespacedName]workload.Pod, error) {
	return readGroups(all, func(l lease.Lease) string { return l.Namespace }, podOf,
		func(n types.NamespacedName) (workload.Pod, bool, error) {
			pod, err := c.Pods.FindLive(ctx, n.Namespace, n.Name, "")
			if errors.Is(err, workload.ErrNotFound) {
				return pod, false, nil
			}
			return pod, true, err
		},
		func(namespace string, found func(types.NamespacedName, workload.Pod)) error {
			for next, more := "", true; more; more = next != "" {
				var page corev1.PodList
				if err := c.Pods.Live.List(ctx, &page, client.InNamespace(namespace), client.Limit(podPage),
					client.Continue(next)); err != nil {
					return err
				}
				for i := range page.Items {
					found(client.ObjectKeyFromObject(&page.Items[i]), workload.FromObject(&page.Items[i]))
				}
				next = page.Continue
			}
			return nil
		})
}

func podOf(l lease.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}
}

// readGroups reads an object for each lease: those of a small group singly, some at once, and those of a large one by a
// list. The objects that a list has beside them are left out, so that memory does not grow with it.
func readGroups[K comparable, V any](
	all []lease.Lease, groupOf func(lease.Lease) string, keyOf func(lease.Lease) K,
	get func(K) (V, bool, error), list func(group string, found func(K, V)) error,
) (map[K]V, error) {
	groups := map[string]map[K]bool{}
	for _, l := range all {
		if groups[groupOf(l)] == nil {
			groups[groupOf(l)] = map[K]bool{}
		}
		groups[groupOf(l)][keyOf(l)] = true
	}
	var mu sync.Mutex
	read := map[K]V{}
	var reads errgroup.Group
	reads.SetLimit(parallel)
	for group, keys := range groups {
		found := func(k K, v V) {
			if keys[k] {
				mu.Lock()
				defer mu.Unlock()
				read[k] = v
			}
		}
		if len(keys) >= listFrom {
			reads.Go(func() error { return list(group, found) })
			continue
		}
		for key := range keys {
			reads.Go(func() error {
				v, there, err := get(key)
				if err == nil && there {
					found(key, v)
				}
				return err
			})
		}
	}
	return read, reads.Wait()
}
