package resource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// The addresses that a pool serves depend on its parent and children. The rule is the controller's: ipam.Arrange.

// IsGroup reports whether a pool is a group: it has a parent and is not a block.
func IsGroup(p Pool) bool { return p.Spec.Parent != "" && !IsBlock(p) }

// CheckGroup refuses a pool that is not a group. It accepts a name without a pool, which the caller reports with a
// similar name.
func CheckGroup(all []Pool, name string) error {
	for _, p := range all {
		switch {
		case p.Name != name || IsGroup(p):
		case p.Spec.Parent != "":
			return app.Refuse(app.ReasonNoGroup, "pool %s is not a group but a block of pool %s", name, p.Spec.Parent).
				WithHint("write pool in place of group")
		default:
			return app.Refuse(app.ReasonNoGroup, "pool %s is not a group: it has no parent", name).
				WithHint("write pool in place of group; the groups have a PARENT: bcsnetctl pool list -o wide")
		}
	}
	return nil
}

// Given decodes pools by their specs, without arranging them side by side.
func Given(all []Pool) []ipam.Pool {
	return app.Map(all, func(p Pool) ipam.Pool { return store.Pool(p.BCSNetPool) })
}

// SideBySide returns pools by name with the addresses that each serves. A parent does not serve those of its groups.
func SideBySide(given []ipam.Pool) map[string]ipam.Pool {
	byName := make(map[string]ipam.Pool, len(given))
	for _, p := range ipam.Arrange(given) {
		byName[p.Name] = p
	}
	return byName
}

// Side reads the parent and the groups around a pool, and returns them all arranged side by side.
func (p *Pools) Side(ctx context.Context, one Pool) (map[string]ipam.Pool, error) {
	around, err := p.around(ctx, one)
	return SideBySide(Given(around)), err
}

// around reads the pools on which the served addresses of a pool depend: its parent, the parent's other groups, and its
// own groups. Blocks do not count: they are disjoint.
func (p *Pools) around(ctx context.Context, one Pool) ([]Pool, error) {
	all := map[string]Pool{one.Name: one}
	parents := []string{one.Name}
	if one.Spec.Parent != "" {
		parent, err := p.maybe(ctx, one.Spec.Parent)
		if err != nil {
			return nil, err
		}
		if parent.Stored != nil {
			all[parent.Name] = parent
			parents = append(parents, parent.Name)
		}
	}
	for _, name := range parents {
		if all[name].Spec.BlockSize > 0 {
			continue
		}
		children, err := p.ListWith(ctx, metav1.ListOptions{FieldSelector: "spec.parent=" + name})
		if err != nil {
			return nil, err
		}
		for _, c := range children {
			if _, known := all[c.Name]; !known {
				all[c.Name] = c
			}
		}
	}
	return slices.Collect(maps.Values(all)), nil
}

// Share has some addresses of another pool.
type Share struct {
	Pool  ipam.Pool
	Addrs *netipx.IPSet
}

// Owners returns the other pools that have some of a set of addresses, sorted by name. Blocks count as parts of their
// parents.
func Owners(all map[string]ipam.Pool, name string, some *netipx.IPSet) (owners []Share) {
	isBlock := func(p ipam.Pool) bool { return p.Parent != "" && all[p.Parent].BlockSize > 0 }
	home := name
	if p := all[name]; isBlock(p) {
		home = p.Parent
	}
	for _, o := range slices.Sorted(maps.Keys(all)) {
		if p := all[o]; o != name && o != home && !isBlock(p) {
			if both := ipaddr.Intersect(some, p.Usable()); len(both.Ranges()) > 0 {
				owners = append(owners, Share{p, both})
			}
		}
	}
	return owners
}

// IsBlock reports whether a pool is a block. A pool with a block's name whose known parent is not split is a group.
func IsBlock(p Pool) bool { return p.parent == nil && store.IsBlock(p.BCSNetPool) }

// WithoutBlocks removes the blocks of split pools, which are counted with their pools. A pool with a block's name stays
// if its parent is in the list and not split.
func WithoutBlocks(all []Pool) []Pool {
	whole := map[string]bool{}
	for _, p := range all {
		whole[p.Name] = p.Spec.BlockSize == 0
	}
	return slices.DeleteFunc(slices.Clone(all), func(p Pool) bool {
		return IsBlock(p) && !whole[p.Spec.Parent]
	})
}

// BlocksOf returns the blocks among the pools, by parent.
func BlocksOf(all []Pool) map[string][]Pool {
	of := map[string][]Pool{}
	for _, p := range all {
		if store.IsBlock(p.BCSNetPool) {
			of[p.Spec.Parent] = append(of[p.Spec.Parent], p)
		}
	}
	return of
}

// CheckOwnHosts refuses a block, because a block always has the hosts of its parent. verb is the subcommand of pool for
// the hint.
func CheckOwnHosts(p Pool, verb string) error {
	if p.whole == nil {
		return nil
	}
	return app.Refuse(app.ReasonPoolInvalid, "pool %s is a block of pool %s, whose hosts are its own", p.Name,
		p.whole.Name).WithHint("change that pool instead: bcsnetctl pool %s %s HOST", verb, p.whole.Name)
}

// OwnerOf returns the namespace of a block.
func OwnerOf(block Pool) string { return strings.Join(block.Spec.Namespaces, ", ") }
