package ui

import (
	"context"
	"net/netip"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// object is the model of the page of an object, in addition to its lists.
type object struct {
	Facts    view.Facts
	Next     view.Steps
	Problems []string
	Earlier  []view.Past
	Leases   rows[lease.Lease]
	Bad      []metav1.Condition
	Events   []resource.Event
	Pools    rows[hostPool]
	// Chain is nil if the user may not read it. Tried and Passed are its places.
	Name          string
	Chain         *view.Chain
	Tried, Passed rows[ipam.Place]
	Claims        rows[resource.Claim]
	// Past is the path of the history; empty without one.
	Past string
	// Healthy: the next steps only serve to free the address.
	Healthy bool
}

// hostPool is a pool that a host may draw from, and the number of its addresses on the host.
type hostPool struct {
	view.PoolRow
	Held int
}

func addressPage(ctx context.Context, q *request) (*page, error) {
	a, err := ipaddr.ParseAddr(q.PathValue("address"))
	if err != nil {
		return nil, app.Refuse(app.ReasonAddressNotInSubnet, "%q cannot be the name of an address: %v",
			q.PathValue("address"), err)
	}
	all, err := view.Addresses(ctx, q.App, []netip.Addr{a})
	if err != nil {
		return nil, err
	}
	o := object{Facts: all[0].Facts(q.App), Next: all[0].Next(), Earlier: all[0].Earlier(),
		Past: pastLink("ip", a.String()), Healthy: all[0].Healthy()}
	p := &page{Title: a.String(), Watch: []follow.Source{of(v1.IPResource, "metadata.name", ipaddr.ObjectName(a))}}
	return p, q.sections(p, o, "object", "earlier", "past")
}

func hostPage(ctx context.Context, q *request) (*page, error) {
	word := q.PathValue("name")
	if err := resource.CheckHost(word); err != nil {
		return nil, err
	}
	h, err := view.HostNamed(ctx, q.App, word)
	if err != nil {
		return nil, err
	}
	o := object{Facts: h.Facts(q.App), Leases: rowsOf(q, "leases", h.Held), Past: pastLink("host", word)}
	o.Problems, o.Next = h.Findings()
	held, pools := h.HeldOf(), []hostPool{}
	for _, one := range h.Pools {
		pools = append(pools, hostPool{view.RowOf(q.App, one), held[one.Name]})
	}
	o.Pools = rowsOf(q, "host-pools", pools)
	p := &page{Title: word, Watch: []follow.Source{
		of(v1.PoolResource, "", ""), of(v1.IPResource, "status.host", h.Host.String()), {Kind: resource.NodeResource()},
	}}
	return p, q.sections(p, o, "object", "problems-here", "host-pools", "leases", "past")
}

func claimPage(ctx context.Context, q *request) (*page, error) {
	key := types.NamespacedName{Namespace: q.PathValue("namespace"), Name: q.PathValue("name")}
	c, err := view.ClaimNamed(ctx, q.App, key, !q.may(ofAddresses()))
	if err != nil {
		return nil, err
	}
	o := object{Facts: c.Facts(q.App), Next: c.Next(), Leases: rowsOf(q, "kept", c.Leases), Events: c.Events,
		Bad: resource.NotAsTheyShould(c.Status.Conditions)}
	itself := of(v1.ClaimResource, "metadata.name", key.Name)
	itself.Namespace = key.Namespace
	p := &page{Title: c.FullName(), Watch: []follow.Source{itself, of(v1.IPResource, "status.claim", c.FullName())}}
	return p, q.sections(p, o, "object", "conditions", "kept", "events")
}

func namespacePage(ctx context.Context, q *request) (*page, error) {
	name := q.PathValue("name")
	if err := resource.CheckNamespace(name); err != nil {
		return nil, err
	}
	o := object{Name: name, Past: pastLink("namespace", name)}
	var leases []lease.Lease
	var claims []resource.Claim
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if q.may(ofPools()) && q.may(ofNamespace("name")) {
			o.Chain, err = view.ChainOf(reading, q.App, name, "")
		}
		return err
	})
	group.Go(func() (err error) {
		if !q.may(ofAddresses()) {
			return nil
		}
		leases, err = resource.HeldLeases(reading, q.App, resource.LeaseQuery{Namespace: name},
			func(l lease.Lease) bool { return l.State != lease.Available })
		return err
	})
	group.Go(func() error {
		api, err := resource.NewClaims(q.App)
		if err == nil && q.may(ofClaims("name")) {
			claims, err = api.List(reading, name, metav1.ListOptions{})
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if o.Chain != nil {
		o.Next = o.Chain.Next()
		o.Tried, o.Passed = rowsOf(q, "chain", o.Chain.Tried), rowsOf(q, "passed", o.Chain.Passed)
	}
	o.Leases, o.Claims = rowsOf(q, "leases", leases), rowsOf(q, "claims-here", claims)
	claimed := of(v1.ClaimResource, "", "")
	claimed.Namespace = name
	p := &page{Title: name, Watch: []follow.Source{
		of(v1.PoolResource, "", ""), of(v1.IPResource, "status.podNamespace", name), claimed,
	}}
	return p, q.sections(p, o, "namespace", "chain", "claims-here", "leases", "past")
}
