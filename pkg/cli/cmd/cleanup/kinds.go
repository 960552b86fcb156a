package cleanup

import (
	"context"
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func kinds(s *app.App) []kind {
	return []kind{
		{
			name: "network", arg: "NETWORK", short: "End the leases of a network whose holders are gone",
			long: `End the leases in the pools of a network, and in their groups, whose holders are
gone, after a question.`,
			example: `  bcsnetctl cleanup network prod --dry-run=client
  bcsnetctl cleanup network prod --yes -o json`,
			completes: resource.CompleteNetworks(s), find: ofNetwork,
		},
		{
			name: "pool", arg: "POOL", short: "End the leases of a pool whose holders are gone",
			long: `End the leases of a pool whose holders are gone, after a question.`,
			example: `  bcsnetctl cleanup pool blue --dry-run=client
  bcsnetctl cleanup pool blue --kept --yes`,
			completes: resource.CompletePoolFirst(s, nil), find: ofPool,
		},
		{
			name: "group", arg: "GROUP", short: "End the leases of a group whose holders are gone",
			long: `End the leases of a group, a pool that is a part of another one, whose holders
are gone, after a question. Those of its parent stay.`,
			example: `  bcsnetctl cleanup group blue-payments --dry-run=client
  bcsnetctl cleanup group blue-payments --yes`,
			completes: resource.CompleteGroups(s), find: ofGroup,
		},
		{
			name: "host", arg: "HOST|NODE", short: "End the leases on a host whose holders are gone",
			long: `End the leases on a host whose holders are gone, after a question. The host is
named by its IP or its node. When the machine is off, containers that nobody
hears of may still run: bcsnetctl release-host takes your word for it.`,
			example: `  bcsnetctl cleanup host 10.0.0.11 --dry-run=client
  bcsnetctl cleanup host node-1 --yes`,
			completes: resource.CompleteOneHost(s), check: resource.CheckHost, find: ofHost,
		},
		{
			name: "endpoint", arg: "POD|CONTAINER|ADDRESS", short: "End the leases of one pod, container or owner that is gone",
			long: `End the leases of one endpoint, if it is gone, after a question: a pod, as
NAMESPACE/POD, a container, by its ID or the first 4 digits or more of it, an
owner that is no pod, or whoever has an address.`,
			example: `  bcsnetctl cleanup endpoint shop/web-0
  bcsnetctl cleanup endpoint 10.0.0.20 --force --yes`,
			completes: resource.CompleteEndpoints(s),
			check:     checkEndpoint, find: ofEndpoint, single: true,
		},
	}
}

// held lists the addresses that a query finds and that somebody uses, or that claims keep.
func (v *cleanup) held(ctx context.Context, q resource.LeaseQuery) ([]lease.Lease, error) {
	return resource.HeldLeases(ctx, v.App, q, func(l lease.Lease) bool {
		return l.State == lease.Active || l.IsRetained()
	})
}

func ofNetwork(ctx context.Context, v *cleanup) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return nil, err
	}
	in, err := resource.InNetwork(all, v.name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range in {
		names = append(names, p.Name)
	}
	return v.heldIn(ctx, resource.LeasePools(all, names, true))
}

// heldIn lists what is held in pools.
func (v *cleanup) heldIn(ctx context.Context, names []string) ([]lease.Lease, error) {
	in := map[string]bool{}
	for _, name := range names {
		in[name] = true
	}
	held, err := resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Selectors: resource.TakenOnly()},
		func(l lease.Lease) bool { return (l.State == lease.Active || l.IsRetained()) && in[l.Pool] })
	return resource.Sides(held, anySide), err
}

// anySide matches all attachments.
func anySide(lease.Lease) bool { return true }

// ofPool lists what names the pool or one of its blocks, also where the pool itself is gone.
func ofPool(ctx context.Context, v *cleanup) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return nil, err
	}
	held, err := v.heldIn(ctx, append(resource.LeasePools(all, []string{v.name}, false), v.name))
	if err != nil || len(held) > 0 {
		return held, err
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, err
	}
	_, err = api.Get(ctx, v.name)
	return nil, err
}

// ofGroup lists what names the group.
func ofGroup(ctx context.Context, v *cleanup) ([]lease.Lease, error) {
	all, err := resource.AllPools(ctx, v.App)
	if err == nil {
		err = resource.CheckGroup(all, v.name)
	}
	if err != nil {
		return nil, err
	}
	return ofPool(ctx, v)
}

func ofHost(ctx context.Context, v *cleanup) ([]lease.Lease, error) {
	h, err := resource.FindHost(ctx, v.App, v.name)
	if err != nil {
		return nil, err
	}
	var all []lease.Lease
	for _, a := range h.Addrs {
		held, err := v.held(ctx, resource.LeaseQuery{Host: a.String(), Selectors: resource.TakenOnly()})
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}

// title names what is cleaned up.
func (v *cleanup) title() string { return fmt.Sprintf("%s %s", v.kind.name, v.name) }
