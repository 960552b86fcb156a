package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// inputs are the lists that must be received before a request can be decided, by the kinds of their objects.
type inputs map[string]func() (synced bool)

// missing returns an error that names the lists that were not received yet; nil if all were.
func (in inputs) missing() error {
	var missing []string
	for what, ok := range in {
		if !ok() {
			missing = append(missing, what)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("the list of %s has not come from the API server yet", strings.Join(missing, ", "))
}

// watch feeds pools, namespaces, nodes and pods to the index and related components, on every replica.
func (in inputs) watch(
	ctx context.Context, c cache.Cache, index *index.Index, nodes *node.Nodes, endings *workload.Endings,
	pools *pool.Reconciler,
) error {
	watch := func(what string, o client.Object, h toolscache.ResourceEventHandler) (err error) {
		in[what], err = informers.Watch(ctx, c, o, h)
		return err
	}
	return errors.Join(
		watch("BCSNetPools", &v1.BCSNetPool{}, informers.Handler(func(p *v1.BCSNetPool) {
			if known, ok := index.Pools.Get(p.Name); ok && store.Known(known, p) {
				return
			}
			pools.Changed(p.Name, func() { index.Pools.WatchedPool(store.Pool(p)) })
		}, func(p *v1.BCSNetPool) {
			pools.Changed(p.Name, func() { index.Pools.WatchedPoolEnd(p.Name, p.CreationTimestamp.Time) })
		})),
		watch("BCSNetIPClaims", &v1.BCSNetIPClaim{}, toolscache.ResourceEventHandlerFuncs{}), // cached reads only
		watch("Namespaces", &corev1.Namespace{}, informers.Handler(func(n *corev1.Namespace) {
			pools.Rebound(index.Pools.SetNamespace(n.Name, n.Labels))
		}, func(n *corev1.Namespace) {
			pools.Rebound(index.Pools.RemoveNamespace(n.Name))
		})),
		watch("Nodes", &corev1.Node{}, informers.Handler(nodes.Set, nodes.Remove)),
		watch("Pods", &corev1.Pod{}, endings),
	)
}
