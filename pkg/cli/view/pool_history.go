package view

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/history"
)

// PoolHistory has the changes of a pool, newest first.
type PoolHistory struct {
	Records []history.Record
	History
}

// PoolHistoryOf reads the records of a pool.
func PoolHistoryOf(
	ctx context.Context, s *app.App, pool string, period resource.Period, limit int,
) (*PoolHistory, error) {
	parts, err := resource.ReadHistoryParts(ctx, s, period.Since)
	if err != nil {
		return nil, err
	}
	h := &PoolHistory{}
	h.note(s, HistoryQuery{Period: period}, parts)
	err = parts.Back(ctx, func(records []history.Record) bool {
		for _, r := range records {
			switch {
			case !period.Has(r.Time, r.Time):
			case r.What == history.WhatGap:
				h.Gaps = append(h.Gaps, r)
			case r.Pool == pool && !r.IP.IsValid():
				h.Records = append(h.Records, r)
			}
		}
		return limit <= 0 || len(h.Records) <= limit
	})
	slices.SortStableFunc(h.Records, func(a, b history.Record) int { return b.Compare(a) })
	h.Records = slices.CompactFunc(h.Records, func(a, b history.Record) bool { return a.Compare(b) == 0 })
	if limit > 0 && len(h.Records) > limit {
		h.Records = h.Records[:limit]
		h.Notes = append(h.Notes, "older changes are left out; for more, or for another time: --limit, --until")
	}
	return h, err
}

// Author names the user who made a change, or the client if the user is unknown.
func Author(r history.Record) string {
	switch {
	case r.By != "":
		return r.By
	case r.Program != "":
		return "program " + r.Program
	}
	return ""
}
