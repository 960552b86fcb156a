package view

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Host describes a host.
type Host struct {
	*resource.FoundHost
	// Pools may serve the host. Held are its addresses in use.
	Pools []resource.Pool
	Held  []lease.Lease
	// parents names the parents of blocks, because the hosts of a block are its parent's.
	parents map[string]string
}

// HostNamed reads a host by its IP or the name of its node.
func HostNamed(ctx context.Context, s *app.App, word string) (*Host, error) {
	found, err := resource.FindHost(ctx, s, word)
	if err != nil {
		return nil, err
	}
	h := &Host{FoundHost: found}
	if err := h.fill(ctx, s); err != nil {
		return nil, err
	}
	if h.Node == nil && !h.Blind && len(h.Held) == 0 && h.listedBy() == "" {
		where := "in no pool"
		if len(h.Pools) > 0 {
			where = "in no pool but by the host subnets of " + h.Pools[0].Name
		}
		return nil, app.Refuse(app.ReasonHostNotFound, "host %s is not a node, is %s, and holds no address", h.Host,
			where).
			WithHint("see all hosts: bcsnetctl host list")
	}
	return h, nil
}

// fill reads the pools and the addresses of the host.
func (h *Host) fill(ctx context.Context, s *app.App) error {
	api, err := resource.NewPools(s)
	if err != nil {
		return err
	}
	all, _, err := api.WithoutBlocks(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if resource.Serves(p, h.Addrs, h.Nodes) {
			h.Pools = append(h.Pools, p)
		}
	}
	for _, a := range h.Addrs {
		query := resource.LeaseQuery{Host: a.String(), Status: lease.Active.String()}
		held, err := resource.HeldLeases(ctx, s, query, func(lease.Lease) bool { return true })
		if err != nil {
			return err
		}
		h.Held = append(h.Held, held...)
	}
	h.parents = map[string]string{}
	for _, p := range all {
		for _, l := range h.Held {
			if p.Spec.BlockSize > 0 && block.OfName(l.Pool, p.Name).IsValid() {
				h.parents[l.Pool] = p.Name
			}
		}
	}
	return nil
}

// listedBy names the first pool that lists the host, not by a host subnet; empty if none does.
func (h *Host) listedBy() string {
	for _, p := range h.Pools {
		if slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool {
			return slices.Contains(resource.ListedHosts(p),
				a)
		}) {
			return p.Name
		}
	}
	return ""
}

// HeldOf counts the host's addresses by pool. Addresses of a block count for its parent.
func (h *Host) HeldOf() map[string]int {
	held := map[string]int{}
	for _, l := range h.Held {
		held[cmp.Or(h.parents[l.Pool], l.Pool)]++
	}
	return held
}

// State returns the state of the host; empty if nodes cannot be read.
func (h *Host) State() string {
	switch {
	case h.Node != nil:
		return h.Node.State
	case h.Blind:
		return ""
	default:
		return resource.HostGone
	}
}
