package resource

import (
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/store"
)

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
