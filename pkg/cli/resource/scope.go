package resource

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// LeasePools names the pools whose leases are those of some pools: these, their blocks, and with groups all that are
// carved from them.
func LeasePools(all []Pool, some []string, groups bool) (names []string) {
	blocked := map[string]bool{}
	for _, p := range all {
		blocked[p.Name] = p.Spec.BlockSize > 0
	}
	for _, p := range all {
		if slices.Contains(some, p.Name) ||
			slices.Contains(some, p.Spec.Parent) && (groups || blocked[p.Spec.Parent]) {
			names = append(names, p.Name)
		}
	}
	return names
}

// WithGroups returns some pools, each with its groups behind it. Blocks are counted with the pool that they are of.
func WithGroups(all, some []Pool) (out []Pool) {
	for _, p := range some {
		out = append(out, p)
		for _, g := range all {
			given := slices.ContainsFunc(some, func(o Pool) bool { return o.Name == g.Name })
			if g.Spec.Parent == p.Name && p.Spec.BlockSize == 0 && !given {
				out = append(out, g)
			}
		}
	}
	return out
}

// InNetwork returns the pools of a network, by name; one without pools is an error that knows a better name.
func InNetwork(all []Pool, network string) ([]Pool, error) {
	var in []Pool
	var names []string
	isPool := false
	for _, p := range all {
		if p.Spec.Network == network && network != "" {
			in = append(in, p)
		}
		if p.Spec.Network != "" {
			names = append(names, p.Spec.Network)
		}
		isPool = isPool || p.Name == network
	}
	if len(in) > 0 {
		return in, nil
	}
	f := app.Refuse(ipam.ReasonNetworkNotFound, "no pool is of network %s", network)
	slices.Sort(names)
	near := app.Nearest(network, slices.Compact(names))
	switch {
	case isPool:
		return nil, f.WithHint("there is a pool of this name: write pool in place of network")
	case near != "":
		return nil, f.WithHint("did you mean %s? All networks: bcsnetctl pool tree", near)
	default:
		return nil, f.WithHint("see all networks and their pools: bcsnetctl pool tree")
	}
}
