package view

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// HistoryQuery selects a history: of addresses, or of all addresses of a host, a namespace, a pod or a pool. Empty
// fields select nothing.
type HistoryQuery struct {
	resource.Period
	Addrs                []netip.Addr
	Hosts                []netip.Addr
	Namespace, Pod, Pool string
	// Limit bounds the rows; the newest ones are kept.
	Limit int
}

// Broad reports whether the query selects by more than addresses.
func (q *HistoryQuery) Broad() bool {
	return len(q.Hosts) > 0 || q.Namespace != "" || q.Pod != "" || q.Pool != ""
}

// History has the result of a query.
type History struct {
	Rows []Past
	// Gaps are periods of which records may be missing.
	Gaps []history.Record
	// Notes say what else may be missing.
	Notes []string
}

// HistoryOf reads the past and present holders of addresses. Rows come from the given leases, other leases that match
// the query, and the history, newest first.
func HistoryOf(ctx context.Context, s *app.App, q HistoryQuery, leases []lease.Lease) (*History, error) {
	h := &History{}
	if q.Broad() {
		some, err := q.holding(ctx, s)
		if err != nil {
			return nil, err
		}
		leases = append(leases, some...)
	}
	for _, l := range leases {
		for _, row := range PastOf(l) {
			if q.wants(row, l) {
				h.Rows = append(h.Rows, row)
			}
		}
	}
	parts, err := resource.ReadHistoryParts(ctx, s, q.Since)
	if err != nil {
		return nil, err
	}
	h.note(s, q, parts)
	err = parts.Back(ctx, func(records []history.Record) bool {
		for _, r := range records {
			h.take(q, r)
		}
		return q.Limit <= 0 || len(h.Rows) <= 2*q.Limit
	})
	h.order(q)
	return h, err
}

// note says what the rows lack.
func (h *History) note(s *app.App, q HistoryQuery, parts *resource.HistoryParts) {
	switch {
	case parts.Missing != "":
		h.Notes = append(h.Notes, parts.Missing)
	case parts.Begins.IsZero() && !q.Broad(): // addresses remember their last holders
	case parts.Begins.IsZero():
		h.Notes = append(h.Notes, "the history in "+s.Where()+" has no record yet")
	case parts.Begins.After(q.Since) && !q.Since.IsZero():
		h.Notes = append(h.Notes, "the history begins at "+resource.TimeText(parts.Begins))
	}
}

// take adds a record if it matches the query.
func (h *History) take(q HistoryQuery, r history.Record) {
	switch {
	case r.What == history.WhatGap:
		if q.Has(r.Since, r.Time) {
			h.Gaps = append(h.Gaps, r)
		}
	case r.IP.IsValid():
		row := Past{Addr: r.IP, Pool: r.Pool, Past: lease.Past{Holder: r.Holder(), Host: r.Host, Since: r.Since,
			Until: r.Time, Change: lease.Change{Verb: r.What, By: r.By, Reason: r.Reason}}}
		if q.finds(row, r.Namespace, r.Pod) {
			h.Rows = append(h.Rows, row)
		}
	}
}

// order removes duplicate rows and sorts the others, newest first; if the query is not broad, by address first. Rows of
// the same address and second keep their order.
func (h *History) order(q HistoryQuery) {
	seen := map[pastKey]bool{}
	h.Rows = slices.DeleteFunc(h.Rows, func(p Past) bool {
		key := keyOf(p)
		known := seen[key]
		seen[key] = true
		return known
	})
	slices.SortStableFunc(h.Rows, func(a, b Past) int {
		byAddr, newest := a.Addr.Compare(b.Addr), b.Until.Compare(a.Until)
		if a.Current != b.Current {
			newest = 1
			if a.Current {
				newest = -1
			}
		}
		if q.Broad() {
			return cmp.Or(newest, byAddr)
		}
		return cmp.Or(byAddr, newest)
	})
	if q.Limit > 0 && len(h.Rows) > q.Limit {
		h.Rows = h.Rows[:q.Limit]
		h.Notes = append(h.Notes, "older rows are left out; for more, or for another time: --limit, --until")
	}
}

// pastKey is equal for two rows about the same holding. An address remembers the same as the history, but with a
// shortened holder.
type pastKey struct {
	addr         netip.Addr
	current      bool
	since, until int64
	holder, verb string
}

func keyOf(p Past) pastKey {
	return pastKey{p.Addr, p.Current, p.Since.Unix(), p.Until.Unix(), lease.PastHolder(p.Holder), p.Verb}
}

// holding returns the present leases that match the query.
func (q *HistoryQuery) holding(ctx context.Context, s *app.App) (all []lease.Lease, err error) {
	taken := func(l lease.Lease) bool { return l.State != lease.Available }
	of := resource.LeaseQuery{Pool: q.Pool, Namespace: q.Namespace, Pod: q.Pod}
	if len(q.Hosts) == 0 {
		return resource.HeldLeases(ctx, s, of, taken)
	}
	for _, host := range q.Hosts {
		of.Host = host.String()
		some, err := resource.HeldLeases(ctx, s, of, taken)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// wants reports whether a row of a lease matches the query. Rows that a named address itself remembers match at any
// time.
func (q *HistoryQuery) wants(row Past, l lease.Lease) bool {
	if slices.Contains(q.Addrs, l.Addr) {
		return true
	}
	namespace, pod := history.PodOf(row.Holder)
	if row.Current && l.State == lease.Reserved { // kept for a pod by name
		namespace, pod = l.Namespace, l.PodName
	}
	return q.finds(row, namespace, pod)
}

// finds reports whether a row matches the period and all other conditions.
func (q *HistoryQuery) finds(row Past, namespace, pod string) bool {
	until := row.Until
	if row.Current {
		until = resource.Always()
	}
	since := row.Since
	if since.IsZero() {
		since = row.Until
	}
	return q.Has(since, until) && (len(q.Addrs) == 0 || slices.Contains(q.Addrs, row.Addr)) &&
		(len(q.Hosts) == 0 || slices.Contains(q.Hosts, row.Host)) && (q.Namespace == "" || q.Namespace == namespace) &&
		(q.Pod == "" || q.Pod == pod) && (q.Pool == "" || q.Pool == row.Pool)
}

// HostAddrs returns the IPs of a host, given by its IP or node. An IP without a node may have a history, too.
func HostAddrs(ctx context.Context, s *app.App, word string) ([]netip.Addr, error) {
	if a, err := ipaddr.ParseAddr(word); err == nil {
		return []netip.Addr{a}, nil
	}
	h, err := resource.FindHost(ctx, s, word)
	if err != nil {
		return nil, err
	}
	return h.Addrs, nil
}
