package view

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// search is a search for addresses.
type search struct {
	text  string
	kinds []FindKind
	// active leaves out reserved addresses.
	active bool
}

// Find finds the addresses that match a text by kinds of things. If nothing has exactly that name, it searches for
// names that begin with it. active leaves out reserved addresses.
func Find(ctx context.Context, s *app.App, text string, kinds []FindKind, active bool) (*Found, error) {
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	v := &search{text, kinds, active}
	found, err := v.exactly(ctx, leases)
	if err == nil && len(found.rows) == 0 {
		found, err = v.beginning(ctx, leases)
		found.prefix = true
	}
	return found, resource.Explain(s, err)
}

// exactly asks the API server for exact matches of each kind.
func (v *search) exactly(ctx context.Context, leases *store.Client) (*Found, error) {
	kinds := v.kinds
	parts := make([][]lease.Lease, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	for i, k := range kinds {
		group.Go(func() (err error) {
			if k.selector == nil {
				a := k.address(v.text)
				if !a.IsValid() {
					return nil
				}
				l, err := leases.Get(ctx, a)
				if err == nil {
					parts[i] = []lease.Lease{l}
				}
				if errors.Is(err, store.ErrNotFound) && !resource.NoSuchResource(err) {
					err = nil
				}
				return err
			}
			parts[i], err = leases.List(ctx, k.selector(v.text))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := newFound()
	for i, k := range kinds {
		for _, l := range parts[i] {
			if v.counts(l) {
				found.add(l, k.Noun)
			}
		}
	}
	return found, nil
}

// beginning reads all held addresses and matches the beginnings of names.
func (v *search) beginning(ctx context.Context, leases *store.Client) (*Found, error) {
	found, kinds := newFound(), v.kinds
	return found, leases.Each(ctx, "status.status!="+lease.Available.String(), func(l lease.Lease) error {
		for _, k := range kinds {
			if k.begins != nil && v.counts(l) && k.begins(l, v.text) {
				found.add(l, k.Noun)
			}
		}
		return nil
	})
}

func (v *search) counts(l lease.Lease) bool {
	return l.State == lease.Active || l.State == lease.Reserved && !v.active
}
