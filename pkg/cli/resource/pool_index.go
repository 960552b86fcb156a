package resource

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// IndexOf returns an index of pools, without addresses and namespaces.
func IndexOf(s *app.App, all []Pool) *index.Index {
	x := index.New()
	SetPools(x, all, s.Now())
	return x
}

// SetPools adds pools to an index, in their state at now.
func SetPools(x *index.Index, all []Pool, now time.Time) {
	for _, p := range all {
		x.Pools.SetPool(store.Pool(p.BCSNetPool))
		x.Pools.SetRebuilding(p.Name, Rebuilding(p, now))
	}
}

// ReadPools adds the pools, and the namespaces that they select, to an index. now is the API server's time.
func ReadPools(ctx context.Context, s *app.App, x *index.Index, now time.Time) error {
	pools, err := AllPools(ctx, s)
	if err != nil {
		return err
	}
	if err := SetNamespaces(ctx, s, x, pools); err != nil {
		return err
	}
	SetPools(x, pools, now)
	return nil
}

// SetNodes adds the nodes to an index if the hosts of one of the pools depend on them.
func SetNodes(ctx context.Context, s *app.App, x *index.Index, pools []Pool) {
	for _, n := range NodesFor(ctx, s, pools...) {
		x.Pools.SetNode(n.Name, n.Known())
	}
}

// SetNamespaces adds the namespaces to an index if one of the pools selects them by labels. If the user may not list
// them, it only warns: pods then get no address from the index, because it cannot tell which pools are theirs.
func SetNamespaces(ctx context.Context, s *app.App, x *index.Index, pools []Pool) error {
	if !slices.ContainsFunc(pools, func(p Pool) bool { return p.Spec.NamespaceSelector != nil }) {
		return nil
	}
	all, err := ListNamespaces(ctx, s)
	switch {
	case apierrors.IsForbidden(err):
		s.Say.Warn("pools choose namespaces by their labels, and you may not list these: %v", err)
		return nil
	case err != nil:
		return Explain(s, err)
	}
	for _, n := range all {
		x.Pools.SetNamespace(n.GetName(), n.GetLabels())
	}
	return nil
}
