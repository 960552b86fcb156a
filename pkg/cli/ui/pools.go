package ui

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// perPage is how many rows a table has on one page.
const perPage = 200

// of selects objects of one kind by a field; all if the value is empty.
func of(kind, field, value string) follow.Source {
	s := follow.Source{Kind: resource.Of(kind)}
	if value != "" {
		s.Which = metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, value).String()}
	}
	return s
}

// overview is the list of pools with what it was asked by.
type overview struct {
	*view.Overview
	Network, Text, Order string
	Page, Pages          int
	Shown                []view.PoolRow
	Orders               []string
}

// At returns the address of the list in another order or at another page.
func (o overview) At(order string, number int) string {
	v := url.Values{}
	for name, value := range map[string]string{"find": o.Text, "sort": order} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if number > 1 {
		v.Set("page", strconv.Itoa(number))
	}
	at := "?" + v.Encode()
	if o.Network != "" {
		return "/network/" + url.PathEscape(o.Network) + at
	}
	return "/" + at
}

func listPools(ctx context.Context, q *request, network string) (overview, error) {
	ask := q.URL.Query()
	o := overview{Network: network, Text: ask.Get("find"), Order: ask.Get("sort"), Orders: view.Orders()}
	if !slices.Contains(o.Orders, o.Order) {
		o.Order = ""
	}
	var err error
	if o.Overview, err = view.OverviewOf(ctx, q.App, network, o.Text, o.Order); err != nil {
		return o, err
	}
	o.Pages = max(1, (len(o.Rows)+perPage-1)/perPage)
	o.Page, _ = strconv.Atoi(ask.Get("page")) // what is no number is the first page
	o.Page = max(1, min(o.Page, o.Pages))
	o.Shown = o.Rows[(o.Page-1)*perPage : min(len(o.Rows), o.Page*perPage)]
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

// poolModel is what the page of a pool shows.
type poolModel struct {
	*view.Pool
	State   string
	Color   terminal.Color
	Facts   view.Facts
	Next    view.Steps
	Map     view.Map
	At      string // the part that the map shows; empty for all
	Up      string // the part around it
	Percent int64
	Bad     []metav1.Condition
	Runs    []netipx.IPRange
	Free    int64
	Used    int64
	Total   int64
	More    int // hosts that hold nothing
	Past    string
	Hosts   []*view.HostUse
	Aside   []view.SetAside
	Spaces  []view.Share
	Claims  []view.Share
}

func poolPage(ctx context.Context, q *request) (*page, error) {
	name := q.PathValue("name")
	d, err := view.PoolNamed(ctx, q.App, name, true)
	if err != nil {
		return nil, err
	}
	m := poolModel{Pool: d, Past: pastLink("pool", name), Facts: d.Facts(q.App), Next: d.Next(q.App),
		Aside: d.SetAside(), Spaces: d.Namespaces(),
		Claims: d.Claims(), Color: resource.PoolStateColor(q.App, d.BCSNetPool),
		Bad: resource.NotAsTheyShould(d.Status.Conditions)}
	m.State, _ = resource.PoolState(q.App, d.BCSNetPool)
	m.Hosts, m.More = d.Hosts()
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
	p := &page{Title: name, Here: "pools", Watch: []follow.Source{of(v1.PoolResource, "", ""), leases}}
	return p, q.sections(p, m, "pool", "conditions", "map", "runs", "aside", "blocks", "hosts", "spaces", "claims",
		"events", "past")
}

// part reads the part of a subnet that a map is to show; an invalid prefix stands for all of it.
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

// around returns the part that a map shows one step back; empty for all.
func around(p, subnet netip.Prefix) string {
	bits := p.Bits() - 8
	if bits <= subnet.Bits() {
		return ""
	}
	return netip.PrefixFrom(p.Addr(), bits).Masked().String()
}
