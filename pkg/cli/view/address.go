package view

import (
	"context"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Address describes an address.
type Address struct {
	lease.Lease
	// Stored is the object; nil if there is none.
	Stored *unstructured.Unstructured
	// pod is the state of the holder's pod; unread is the error if it is unknown.
	pod    resource.PodState
	unread error
	// object is the state of an owner that is an object.
	object resource.OwnerState
	// named is the pool that the object names. exists is false if that pool is gone.
	named  ipam.Pool
	exists bool
	// Serving is the pool that allocates the address; without a name if none does. refusal says why the address cannot
	// be allocated.
	Serving ipam.Pool
	refusal *ipam.Refusal
	// claim is the address's claim; nil if there is none or it is gone.
	claim *v1.BCSNetIPClaim
	// near names the nearest pool of an address that is in no pool's subnet.
	near string
	// role is "gateway of pool NAME" or the like, or that the address is in no pool's subnet; empty for any other.
	role string
}

// Addresses reads addresses, and the state of their holders.
func Addresses(ctx context.Context, s *app.App, addrs []netip.Addr) ([]Address, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(addrs))
	var plans *index.Index
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(resource.AtOnce)
	group.Go(func() (err error) {
		plans, err = resource.IndexAround(asking, s, addrs)
		return err
	})
	for i, a := range addrs {
		group.Go(func() error {
			o, err := c.Resource(resource.Of(v1.IPResource)).Get(asking, ipaddr.ObjectName(a), metav1.GetOptions{})
			switch {
			case err == nil:
				objects[i] = o
			case !apierrors.IsNotFound(err) || resource.NoSuchResource(err):
				return resource.Explain(s, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return addressViews(ctx, s, plans, addrs, objects)
}

// addressViews combines the objects with their pools, claims and pods.
func addressViews(
	ctx context.Context, s *app.App, plans *index.Index, addrs []netip.Addr, objects []*unstructured.Unstructured,
) ([]Address, error) {
	all := make([]lease.Lease, len(objects))
	free := false
	for i, o := range objects {
		all[i] = lease.Lease{Addr: addrs[i]}
		if o != nil {
			var err error
			if all[i], err = resource.ReadLease(o); err != nil {
				return nil, err
			}
		}
		free = free || all[i].State == lease.Available
		plans.Feed.Wrote(all[i])
	}
	if free {
		nodes, err := resource.ListNodes(ctx, s)
		if err != nil {
			s.Say.Warn("nodes cannot be read, so it is unknown whether one has the address itself: %v", err)
		}
		for _, n := range nodes {
			plans.Pools.SetNode(n.Name, n.Known())
		}
	}
	pods, unread := resource.PodStates(ctx, s, all)
	claims, owners := resource.ClaimsOfLeases(ctx, s, all), resource.OwnerStates(ctx, s, all)
	var views []Address
	for i, l := range all {
		view := Address{Lease: l, Stored: objects[i], pod: pods[i], unread: unread[i], object: owners[l.Owner]}
		view.named, view.exists = plans.Pools.Get(l.Pool)
		view.Serving, view.refusal = plans.Candidate(l.Addr, s.Now())
		view.claim = claims[l.Claim]
		all := plans.Pools.All()
		view.near, view.role = nearestPool(l.Addr, all), roleOf(l.Addr, all)
		views = append(views, view)
	}
	return views, nil
}

// roleOf returns why an address is none that a pool could allocate: it is the gateway, network or broadcast address of
// one, or in no pool's subnet. It is empty for any other address.
func roleOf(a netip.Addr, pools []ipam.Pool) string {
	within := false
	for _, p := range pools {
		if !p.Valid() || !p.Plan.Subnet.Contains(a) {
			continue
		}
		if within = true; slices.Contains(p.Plan.Unusable(), a) {
			return p.Plan.Role(a) + " of pool " + p.Name
		}
	}
	if within {
		return ""
	}
	return "not in any pool"
}

// nearestPool returns the pool whose subnet has the most leading bits in common with an address; empty if a subnet
// contains the address, or none has at least 8 in common.
func nearestPool(a netip.Addr, pools []ipam.Pool) (near string) {
	best := 7 // fewer common bits are by chance
	for _, p := range pools {
		net := p.Plan.Subnet
		if !p.Valid() || net.Addr().Is4() != a.Is4() {
			continue
		}
		if net.Contains(a) {
			return ""
		}
		bits := 0
		for bits < net.Bits() && netip.PrefixFrom(net.Addr(), bits+1).Contains(a) {
			bits++
		}
		if bits > best || bits == best && near != "" && p.Name < near {
			best, near = bits, p.Name
		}
	}
	return near
}
