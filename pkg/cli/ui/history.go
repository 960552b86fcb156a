package ui

import (
	"cmp"
	"context"
	"net/url"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// historyModel is the history of a pool, a host or a namespace.
type historyModel struct {
	Kind, Name, Since string
	Times             []string
	Changes           []history.Record
	*view.History
}

// pastLink returns the path of the history of a pool, a host, a namespace or an address.
func pastLink(kind, name string) string { return "/history/" + kind + "/" + url.PathEscape(name) }

// historyPage shows the history of a period. Browsers do not follow it, because it reads the whole period.
func historyPage(ctx context.Context, q *request) (*page, error) {
	m := historyModel{Kind: q.PathValue("kind"), Name: q.PathValue("name"), Times: []string{"1h", "24h", "7d", "30d"},
		Since: q.URL.Query().Get("since")}
	if m.Since == "" {
		m.Since = map[string]string{"ip": "30d"}[m.Kind]
	}
	m.Since = cmp.Or(m.Since, "24h")
	period, err := resource.PeriodSince(m.Since, q.App.Now())
	if err != nil {
		return nil, err
	}
	var held []lease.Lease
	ask := view.HistoryQuery{Period: period, Limit: perPage}
	switch m.Kind {
	case "pool":
		ask.Pool = m.Name
		changes, err := view.PoolHistoryOf(ctx, q.App, m.Name, resource.Period{}, perPage)
		if err != nil {
			return nil, err
		}
		m.Changes = changes.Records
	case "host":
		if err := resource.CheckHost(m.Name); err != nil {
			return nil, err
		}
		if ask.Hosts, err = view.HostAddrs(ctx, q.App, m.Name); err != nil {
			return nil, err
		}
	case "namespace":
		if err := resource.CheckNamespace(m.Name); err != nil {
			return nil, err
		}
		ask.Namespace = m.Name
	case "ip":
		if ask.Addrs, err = resource.ParseAddresses([]string{m.Name}); err != nil {
			return nil, err
		}
		leases, err := q.Leases()
		if err != nil {
			return nil, err
		}
		if held, err = resource.ReadAddresses(ctx, q.App, leases, ask.Addrs); err != nil {
			return nil, err
		}
	default:
		return nil, app.Usagef("there is no history of a %s", m.Kind)
	}
	if m.History, err = view.HistoryOf(ctx, q.App, ask, held); err != nil {
		return nil, err
	}
	p := &page{Title: m.Name}
	return p, q.sections(p, m, "history")
}
