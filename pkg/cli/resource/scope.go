package resource

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// LeasePools names the pools whose leases count for some pools: these and their blocks, and with groups all their
// children.
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

// WithGroups returns some pools, each followed by its groups. It adds no blocks.
func WithGroups(all, some []Pool) (out []Pool) {
	given := map[string]Pool{}
	for _, p := range some {
		given[p.Name] = p
	}
	behind := func(p Pool) bool { // a group of a group does not fit, and stands alone
		parent, is := given[p.Spec.Parent]
		return is && parent.Spec.Parent == ""
	}
	for _, p := range some {
		if behind(p) {
			continue
		}
		out = append(out, p)
		for _, g := range all {
			_, is := given[g.Name]
			if g.Spec.Parent == p.Name && p.Spec.BlockSize == 0 && (!is || behind(g)) {
				out = append(out, g)
			}
		}
	}
	return out
}

// NetworkOf returns the network of a pool: its own, or its parent's for a block and for a group without one.
func NetworkOf(p Pool) string {
	switch {
	case p.whole != nil:
		return p.whole.Spec.Network
	case p.parent != nil && p.Spec.Network == "":
		return p.parent.Spec.Network
	default:
		return p.Spec.Network
	}
}

// InNetwork returns the pools of a network, including groups that inherit it, but not blocks. The error for a network
// without pools suggests a similar name.
func InNetwork(all []Pool, network string) ([]Pool, error) {
	var in []Pool
	var names []string
	isPool := false
	for _, p := range all {
		of := NetworkOf(p)
		if of == network && network != "" && p.whole == nil {
			in = append(in, p)
		}
		if of != "" {
			names = append(names, of)
		}
		isPool = isPool || p.Name == network
	}
	if len(in) > 0 {
		return in, nil
	}
	f := app.Refuse(ipam.ReasonNetworkNotFound, "no pool is of network %s", network)
	slices.Sort(names)
	near := suggest.Nearest(network, slices.Compact(names))
	switch {
	case isPool:
		return nil, f.WithHint("there is a pool of this name: write pool in place of network")
	case near != "":
		return nil, f.WithHint("did you mean %s? All networks: bcsnetctl pool tree", near)
	default:
		return nil, f.WithHint("see all networks and their pools: bcsnetctl pool tree")
	}
}
