package resource

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// A pool that is split may have 65,536 blocks. Lists of pools show it as one, so its blocks are not read for them.

// mostSplit bounds the pools whose blocks a request leaves out by name, which keeps the request short. Blocks of other
// pools are read and removed.
const mostSplit = 64

// namesPage is the number of objects in a list of names.
const namesPage = 5000

// ofParent selects the children of a pool.
func ofParent(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.parent", name).String()}
}

// Whole reads all pools except the children of pools that are split, sorted by name.
func (p *Pools) Whole(ctx context.Context) ([]Pool, error) {
	all, err := p.ListWith(ctx, ofParent(""))
	if err != nil {
		return nil, err
	}
	others := []fields.Selector{fields.OneTermNotEqualSelector("spec.parent", "")}
	for _, one := range split(all) {
		if len(others) <= mostSplit {
			others = append(others, fields.OneTermNotEqualSelector("spec.parent", one.Name))
		}
	}
	groups, err := p.ListWith(ctx, metav1.ListOptions{FieldSelector: fields.AndSelectors(others...).String()})
	if err != nil {
		return nil, err
	}
	return together(append(all, groups...)), nil
}

// split returns the pools that are split.
func split(all []Pool) []Pool {
	return slices.DeleteFunc(slices.Clone(all), func(p Pool) bool { return p.Spec.BlockSize == 0 })
}

// together sorts pools from several lists, and sets their parents.
func together(all []Pool) []Pool {
	slices.SortFunc(all, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b Pool) bool { return a.Name == b.Name })
	return WithoutBlocks(WithParents(all))
}

// WithoutBlocks reads all pools except blocks, sorted by name. It counts the blocks by parent, for which it reads only
// their names. A child of a split pool that has no name of a block is no block.
func (p *Pools) WithoutBlocks(ctx context.Context) (all []Pool, blocks map[string]int, err error) {
	if all, err = p.Whole(ctx); err != nil {
		return nil, nil, err
	}
	blocks = map[string]int{}
	var mu sync.Mutex
	var more []Pool
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for _, one := range split(all) {
		group.Go(func() error {
			n, others, err := p.countBlocks(reading, one.Name)
			if err != nil {
				return Explain(p.App, err)
			}
			var children []Pool
			if others { // somebody made a pool that hands out nothing
				if children, err = p.ListWith(reading, ofParent(one.Name)); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			blocks[one.Name] = n
			more = append(more, children...)
			return nil
		})
	}
	err = group.Wait()
	return together(append(all, more...)), blocks, err
}

// countBlocks counts the blocks of a pool by their names. others reports whether the pool has other children.
func (p *Pools) countBlocks(ctx context.Context, parent string) (n int, others bool, err error) {
	c, err := metadata.NewForConfig(p.Config)
	if err != nil {
		return 0, false, err
	}
	which := ofParent(parent)
	for which.Limit = namesPage; ; {
		page, err := c.Resource(Of(v1.PoolResource)).List(ctx, which)
		if err != nil {
			return 0, false, err
		}
		for i := range page.Items {
			if block.OfName(page.Items[i].Name, parent).IsValid() {
				n++
			} else {
				others = true
			}
		}
		if which.Continue = page.Continue; which.Continue == "" {
			return n, others, nil
		}
	}
}
