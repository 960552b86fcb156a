package ui

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// searchModel has the results of a search.
type searchModel struct {
	Text   string
	Pools  rows[view.PoolRow]
	Leases rows[lease.Lease]
	// Pods have exactly the name. Namespace is the text if one has this name.
	Pods      rows[string]
	Namespace string
}

// searchPage shows the results of a search, or the object itself if it is the only one.
func searchPage(ctx context.Context, q *request) (*page, error) {
	m := searchModel{Text: resource.AddressWord(q.URL.Query().Get("q"))}
	p := &page{Title: "Search"}
	if m.Text == "" {
		p.Redirect = "/"
		return p, nil
	}
	if a, err := ipaddr.ParseAddr(m.Text); err == nil {
		p.Redirect = "/ip/" + a.String()
		if h, err := view.HostNamed(ctx, q.App, a.String()); err == nil && (h.Node != nil || len(h.Held) > 0) {
			p.Redirect = view.PagePath("host", a.String())
		}
		return p, nil
	}
	o, err := view.OverviewOf(ctx, q.App, nil, "", m.Text, "name")
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(o.Rows, func(r view.PoolRow) bool { return r.Name == m.Text }); i >= 0 {
		p.Redirect = view.PagePath("pool", m.Text)
		return p, nil
	}
	if resource.MayBeNode(m.Text) {
		if n, err := resource.GetNode(ctx, q.App, m.Text); err == nil {
			p.Redirect = view.PagePath("node", n.Name)
			return p, nil
		}
	}
	kinds := slices.DeleteFunc(view.FindKinds(), func(k view.FindKind) bool { return !k.May(m.Text) })
	found, err := view.Find(ctx, q.App, m.Text, kinds, false)
	if err != nil {
		return nil, err
	}
	leases := found.Sorted()
	others := slices.ContainsFunc(leases, func(l lease.Lease) bool { return l.Claim != m.Text || l.Who() == m.Text })
	var pods []string
	if !found.Exact() {
		pods = view.PodsNamed(ctx, q.App, m.Text)
	}
	switch {
	case len(leases) > 0 && !others:
		p.Redirect = view.PagePath("claim", m.Text)
		return p, nil
	case len(pods) == 1 && len(o.Rows) == 0:
		p.Redirect = view.PagePath("pod", pods[0])
		return p, nil
	case len(leases) == 1 && len(o.Rows) == 0:
		p.Redirect = view.PagePath("address", leases[0].Addr.String())
		return p, nil
	}
	m.Leases, m.Pools, m.Pods = rowsOf(q, "leases", leases), rowsOf(q, "pools", o.Rows), rowsOf(q, "pods", pods)
	if resource.CheckNamespace(m.Text) == nil {
		if _, err := resource.LabelsOfNamespace(ctx, q.App, m.Text); err == nil {
			m.Namespace = m.Text
		}
	}
	return p, q.sections(p, m, "search")
}
