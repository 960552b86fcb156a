package view

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/kubevirt"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// propose asks an allocator in this process for the addresses that the pod would get. It writes nothing.
func (v *explainer) propose(ctx context.Context, e *Explanation) error {
	reader, err := newReader(v.App)
	if err != nil {
		return err
	}
	policies, err := resource.NewResolver(v.App)
	if err != nil {
		return err
	}
	policies.IPAMClaims = e.policy.IfName != ""
	a, err := leasing.Start(ctx, v.App, func(x *index.Index) (allocator.Pods, allocator.ConstraintsFinder) {
		policies.Index = x
		pods := &workload.Pods{Cached: reader, Live: reader, NodeAddrs: func(string) []netip.Addr { return nil }}
		return pods, &claim.ConstraintsFinder{Policies: policies, Claims: reader, Index: x}
	})
	if err != nil {
		return err
	}
	defer a.Stop()
	migrations, err := newMigrations(v.App)
	if err != nil {
		return err
	}
	a.Adder.AdmitMigrations(migrations)
	if err := a.Open(ctx, v.App); err != nil {
		return err
	}
	e.keeps = map[netip.Addr]bool{}
	for _, i := range e.interfaces {
		ask := allocator.Request{
			Host: e.host, Namespace: e.key.Namespace, PodName: e.key.Name, PodUID: e.pod.UID,
			IfName: i.ifName, Network: i.network,
		}
		held, fresh, err := a.Adder.Propose(ctx, ask)
		if errors.As(err, &i.none) && i.none.Reason == ipam.ReasonPoolExhausted && v.countGone(ctx, e.host, a.Index) {
			i.none = nil
			held, fresh, err = a.Adder.Propose(ctx, ask) // its refusal has the counts
		}
		if errors.As(err, &i.none) {
			continue
		}
		if err != nil {
			return resource.Explain(v.App, err)
		}
		e.Addresses = slices.Concat(e.Addresses, held, fresh)
		for _, l := range fresh {
			now, _ := a.Index.Leases.Get(l.Addr)
			e.keeps[l.Addr] = now.State != lease.Available
		}
	}
	if len(e.interfaces) == 1 {
		e.none, e.interfaces[0].none = e.interfaces[0].none, nil
	}
	return nil
}

// countGone sets in the index how many addresses of each pool of a host are held for pods that are gone, as the
// controller does. Refusals have the number of each pool that they name. It returns false if there are none, or if pods
// or nodes cannot be read.
func (v *explainer) countGone(ctx context.Context, host netip.Addr, x *index.Index) bool {
	pools := x.Pools.PoolsOf(host)
	taken := x.Leases.Find(func(l lease.Lease) bool {
		return l.State == lease.Active && slices.Contains(pools, l.Pool)
	})
	by, err := resource.GoneByPool(ctx, v.App, taken)
	x.Pools.SetGone(by)
	return err == nil && len(by) > 0
}

// newMigrations returns a client that recognizes targets of live migrations by KubeVirt's objects. It does not check
// whether all replicas support second attachments, because the allocator's refusal says so.
func newMigrations(s *app.App) (*kubevirt.Migrations, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return kubevirt.NewMigrations(cfg, client, func() string { return "" })
}

// newReader returns a client that reads pods and claims from the API server.
func newReader(s *app.App) (client.Reader, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	return c, nil
}
