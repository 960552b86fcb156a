package resource

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReadLease decodes a lease.
func ReadLease(u *unstructured.Unstructured) (lease.Lease, error) {
	var o v1.BCSNetIP
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return lease.Lease{}, fmt.Errorf("address %s cannot be read: %w", u.GetName(), err)
	}
	return store.Lease(&o, false)
}

// HeldLeases lists the addresses of the query that match takes, sorted and without duplicates, each seen from the
// attachment that matches.
func HeldLeases(ctx context.Context, s *app.App, q LeaseQuery, match func(lease.Lease) bool) ([]lease.Lease, error) {
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	var out []lease.Lease
	err = leases.Each(ctx, q.Selector(), func(l lease.Lease) error {
		if l, ok := l.From(match); ok {
			out = append(out, l)
		}
		return nil
	})
	if err == nil && q.byHolder() {
		var more []lease.Lease
		more, err = leases.Migrating(ctx, func(l lease.Lease) bool { return l.FromSecond && q.finds(l) && match(l) })
		out = append(out, more...)
	}
	slices.SortStableFunc(out, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	out = slices.CompactFunc(out, func(a, b lease.Lease) bool { return a.Addr == b.Addr })
	return out, Explain(s, err)
}

// HolderText names the pod or owner that holds an address.
func HolderText(l lease.Lease) string {
	if l.Owner != "" {
		return fmt.Sprintf("%s (owner)", l.Owner)
	}
	return l.PodName
}

// AddrText returns an address as text; an invalid one is empty.
func AddrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// LeasesHeldIn lists the addresses of pools that match takes. Without names it lists those of all pools.
func LeasesHeldIn(
	ctx context.Context, s *app.App, names []string, match func(lease.Lease) bool,
) ([]lease.Lease, error) {
	if len(names) == 0 {
		return HeldLeases(ctx, s, LeaseQuery{}, match)
	}
	var all []lease.Lease
	for _, name := range names {
		held, err := HeldLeases(ctx, s, LeaseQuery{Pool: name}, match)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}
