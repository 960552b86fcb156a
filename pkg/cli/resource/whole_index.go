package resource

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// IndexAround returns the index that PoolIndex returns, but with few blocks: those that have the addresses, and those
// of pools that overlap others.
func IndexAround(ctx context.Context, s *app.App, addrs []netip.Addr) (*index.Index, error) {
	api, err := NewPools(s)
	if err != nil {
		return nil, err
	}
	all, err := api.Whole(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, one := range split(all) {
		subnet := store.Pool(one.BCSNetPool).Plan.Subnet
		for _, a := range addrs {
			of, err := a.Prefix(int(one.Spec.BlockSize)) // an error for IPv4 addresses and pools of IPv6
			if err == nil && subnet.Contains(a) {
				names[block.Name(one.Name, of)] = true
			}
		}
	}
	blocks := make([]Pool, len(names))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for i, name := range slices.Sorted(maps.Keys(names)) {
		group.Go(func() (err error) {
			blocks[i], err = api.maybe(reading, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return api.index(ctx, all, slices.DeleteFunc(blocks, func(b Pool) bool { return b.Stored == nil }))
}

// IndexBeside returns the index that PoolIndex returns, but of the blocks only with some, and with those of pools that
// overlap others.
func IndexBeside(ctx context.Context, s *app.App, some []Pool) (*index.Index, error) {
	api, err := NewPools(s)
	if err != nil {
		return nil, err
	}
	all, err := api.Whole(ctx)
	if err != nil {
		return nil, err
	}
	return api.index(ctx, all, some)
}

// index returns the index of pools, the blocks of those that overlap others, and some other pools.
func (p *Pools) index(ctx context.Context, all, some []Pool) (*index.Index, error) {
	x := IndexOf(p.App, append(slices.Clone(all), some...))
	for _, one := range split(all) {
		if len(x.Pools.Overlaps(one.Name)) == 0 {
			continue
		}
		blocks, err := p.ListWith(ctx, ofParent(one.Name))
		if err != nil {
			return nil, err
		}
		SetPools(x, blocks, p.Now())
		all = append(all, blocks...)
	}
	return x, holdOverlapping(ctx, p.App, x, all)
}
