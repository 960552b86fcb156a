package ui

import (
	"context"
	"net/netip"
	"net/url"
	"slices"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// of selects objects of a kind by a field; an empty value selects all.
func of(kind, field, value string) follow.Source {
	s := follow.Source{Kind: resource.Of(kind)}
	if value != "" {
		s.Which = metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, value).String()}
	}
	return s
}

// overview is the list of pools with the query parameters.
type overview struct {
	*view.Overview
	Network, Text, Order string
	Pools                rows[view.PoolRow]
	Names                rows[string] // of the networks
}

// At returns the path of the list in another order.
func (o overview) At(order string) string {
	v := url.Values{}
	for name, value := range map[string]string{"find": o.Text, "sort": order} {
		if value != "" {
			v.Set(name, value)
		}
	}
	at := "?" + v.Encode()
	if o.Network != "" {
		return "/network/" + url.PathEscape(o.Network) + at
	}
	return "/" + at
}

func listPools(ctx context.Context, q *request, network string) (overview, error) {
	ask := q.URL.Query()
	o := overview{Network: network, Text: ask.Get("find"), Order: ask.Get("sort")}
	if !slices.Contains(view.Orders(), o.Order) {
		o.Order = ""
	}
	var err error
	if o.Overview, err = view.OverviewOf(ctx, q.App, q.prometheus, network, o.Text, o.Order); err != nil {
		return o, err
	}
	o.Pools, o.Names = rowsOf(q, "pools", o.Rows), rowsOf(q, "overview", o.Networks)
	return o, nil
}

func overviewPage(ctx context.Context, q *request) (*page, error) {
	o, err := listPools(ctx, q, "")
	if err != nil {
		return nil, err
	}
	p := &page{Title: "Pools", Here: "pools", Watch: []follow.Source{of(v1.PoolResource, "", "")}}
	return p, q.sections(p, o, "overview", "pools")
}

func networkPage(ctx context.Context, q *request) (*page, error) {
	name := q.PathValue("name")
	o, err := listPools(ctx, q, name)
	if err != nil {
		return nil, err
	}
	if len(o.Rows) == 0 && o.Text == "" {
		all, err := resource.AllPools(ctx, q.App)
		if err == nil {
			_, err = resource.InNetwork(all, name) // which knows a better name
		}
		if err != nil {
			return nil, err
		}
	}
	p := &page{Title: name, Here: "pools", Watch: []follow.Source{of(v1.PoolResource, "", "")}}
	return p, q.sections(p, o, "network", "pools")
}

// poolModel is the model of the page of a pool.
type poolModel struct {
	*view.Pool
	State   string
	Color   terminal.Color
	Facts   view.Facts
	Next    view.Steps
	Map     view.Map
	At      string // part that the map shows; empty means all
	Up      string // the part around it
	Percent int64
	Bad     []metav1.Condition
	Runs    []netipx.IPRange
	Free    int64
	Used    int64
	Total   int64
	// Past is the page of the history.
	Past string
	// Problems are the leases that the map shows as problems.
	Problems rows[lease.Lease]
	More     int // hosts that hold nothing
	Hosts    rows[*view.HostUse]
	Aside    rows[view.SetAside]
	Spaces   rows[view.Share]
	Claims   rows[view.Share]
	Blocks   rows[resource.Pool]
	Groups   rows[ipam.Pool]
}

// statusPage shows the status of a pool to users who may not read its addresses.
func statusPage(ctx context.Context, q *request, name string) (*page, error) {
	api, err := resource.NewPools(q.App)
	if err != nil {
		return nil, err
	}
	found, err := api.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	row := view.RowOf(q.App, found)
	row.Trend = view.Trends(ctx, q.App, q.prometheus, []resource.Pool{found})[name]
	m := statusModel{PoolRow: row, Bad: resource.NotAsTheyShould(found.Status.Conditions)}
	p := &page{Title: name, Here: "pools", Watch: []follow.Source{of(v1.PoolResource, "metadata.name", name)}}
	return p, q.sections(p, m, "pool-status", "conditions")
}

// statusModel is the model of statusPage.
type statusModel struct {
	view.PoolRow
	Bad []metav1.Condition
}

func poolPage(ctx context.Context, q *request) (*page, error) {
	name := q.PathValue("name")
	if !q.may(ofAddresses()) {
		return statusPage(ctx, q, name)
	}
	d, err := view.PoolNamed(ctx, q.App, name, true)
	if err != nil {
		return nil, err
	}
	d.Foresee(ctx, q.App, q.prometheus)
	m := poolModel{Pool: d, Past: pastLink("pool", name), Facts: d.Facts(q.App), Next: d.Next(q.App),
		Aside:  rowsOf(q, "aside", d.SetAside()),
		Spaces: rowsOf(q, "spaces", d.Namespaces()), Claims: rowsOf(q, "claims", d.Claims()),
		Blocks: rowsOf(q, "blocks", d.Blocks()), Groups: rowsOf(q, "pool", d.Groups),
		Color: resource.PoolStateColor(q.App, d.BCSNetPool), Bad: resource.NotAsTheyShould(d.Status.Conditions)}
	m.State, _ = resource.PoolState(q.App, d.BCSNetPool)
	hosts, more := d.Hosts()
	m.Hosts, m.More = rowsOf(q, "hosts", hosts), more
	if room := d.Room(); room.Total > 0 {
		m.Free, m.Used, m.Total = room.Free, room.Total-room.Free, room.Total
		m.Percent = int64(float64(m.Used) / float64(m.Total) * 100)
	}
	if d.Plan.Valid() {
		within, err := part(q.URL.Query().Get("at"), d.Plan.Plan.Subnet)
		if err != nil {
			return nil, err
		}
		m.Map = d.Map(within)
		m.Problems = rowsOf(q, "map", m.Map.Problems)
		if within.IsValid() {
			m.At, m.Up = within.String(), around(within, d.Plan.Plan.Subnet)
		}
		if m.Runs, err = d.FreeRuns(ctx, q.App); err != nil {
			return nil, err
		}
	}
	leases := of(v1.IPResource, "spec.pool", name)
	if d.Spec.BlockSize > 0 {
		leases = of(v1.IPResource, "", "") // those of the blocks, too
	}
	watch := append(family(name), leases)
	if parent := d.Spec.Parent; parent != "" {
		watch = append(watch, family(parent)...)
	}
	p := &page{Title: name, Here: "pools", Watch: watch}
	return p, q.sections(p, m, "pool", "conditions", "map", "runs", "aside", "blocks", "hosts", "spaces", "claims",
		"events", "past")
}

// family selects a pool, its groups and blocks. The status of other pools changes often, and does not change the page.
func family(pool string) []follow.Source {
	return []follow.Source{of(v1.PoolResource, "metadata.name", pool), of(v1.PoolResource, "spec.parent", pool)}
}

// part parses the part of a subnet for a map. An invalid prefix means the whole subnet.
func part(text string, subnet netip.Prefix) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	p, err := ipaddr.ParseNetwork(text)
	if err != nil || !subnet.Contains(p.Addr()) || p.Bits() < subnet.Bits() {
		return netip.Prefix{}, app.Refuse(app.ReasonAddressNotInSubnet, "%q cannot be the name of a part of %s", text,
			subnet)
	}
	return p, nil
}

// around returns the next larger part for a map; empty means all.
func around(p, subnet netip.Prefix) string {
	bits := p.Bits() - 8
	if bits <= subnet.Bits() {
		return ""
	}
	return netip.PrefixFrom(p.Addr(), bits).Masked().String()
}
