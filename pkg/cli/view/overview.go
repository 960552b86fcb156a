package view

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// PoolRow is a pool in a list, with the counts of its status.
type PoolRow struct {
	resource.Pool
	// State is one word, and Color its colour. Attention: the pool needs attention.
	State     string
	Color     terminal.Color
	Attention bool
	// Blocks counts the blocks of a split pool.
	Blocks int
	// Trend is nil if nothing can be said.
	Trend *Trend
}

// Used counts the addresses that are not free.
func (p PoolRow) Used() int64 { return p.Status.Capacity - p.Status.Available }

// Percent returns the used part in whole percent, rounded down, so that only a full pool has 100.
func (p PoolRow) Percent() int64 {
	if p.Status.Capacity <= 0 {
		return 0
	}
	return int64(float64(p.Used()) / float64(p.Status.Capacity) * 100)
}

// Overview lists all pools with the counts of their status. Its cost does not depend on the number of addresses. Of
// blocks only the names are read.
type Overview struct {
	Rows []PoolRow
	// Attention counts the pools that need attention, Full those without a free address; also pools that the text does
	// not match.
	Attention, Full int
	// Networks names all networks, sorted.
	Networks []string
	// Trends: the trends of the pools are known.
	Trends bool
}

// OverviewOf lists the pools that match a text. A network limits list and counts to its pools; may be empty. from has
// the trends; may be nil.
func OverviewOf(ctx context.Context, s *app.App, from *Prometheus, network, text, order string) (*Overview, error) {
	api, err := resource.NewPools(s)
	if err != nil {
		return nil, err
	}
	all, blocks, err := api.WithoutBlocks(ctx)
	if err != nil {
		return nil, err
	}
	trends := Trends(ctx, s, from, all)
	o := &Overview{Trends: trends != nil}
	for _, p := range all {
		of := resource.NetworkOf(p)
		if of != "" && !slices.Contains(o.Networks, of) {
			o.Networks = append(o.Networks, of)
		}
		row := RowOf(s, p)
		row.Blocks, row.Trend = blocks[p.Name], trends[p.Name]
		if network != "" && of != network {
			continue
		}
		if row.matches(text) {
			o.Rows = append(o.Rows, row)
		}
		if row.Attention {
			o.Attention++
		}
		if resource.Counted(p.BCSNetPool) && p.Status.Capacity > 0 && p.Status.Available == 0 {
			o.Full++
		}
	}
	slices.Sort(o.Networks)
	slices.SortStableFunc(o.Rows, orders()[order])
	return o, nil
}

// RowOf returns the row of a pool.
func RowOf(s *app.App, p resource.Pool) PoolRow {
	row := PoolRow{Pool: p, Color: resource.PoolStateColor(s, p.BCSNetPool)}
	row.State, row.Attention = resource.PoolState(s, p.BCSNetPool)
	return row
}

// matches reports whether a text occurs in a pool's name, subnet, parent, network or VLAN, ignoring case.
func (p PoolRow) matches(text string) bool {
	for _, of := range []string{
		p.Name, resource.CidrOf(p.BCSNetPool), p.Spec.Parent, resource.NetworkOf(p.Pool),
		"vlan" + app.UnlessZero(p.Spec.VLAN),
	} {
		if strings.Contains(strings.ToLower(of), strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// soon returns the shortest time until the pool is full, which may be longer than any.
func (p PoolRow) soon() time.Duration {
	switch {
	case resource.Counted(p.BCSNetPool) && p.Status.Capacity > 0 && p.Status.Available == 0:
		return 0
	case p.Trend == nil || p.Trend.Soonest == 0:
		return math.MaxInt64
	}
	return p.Trend.Soonest
}

// orders returns the orders of an overview by name. The default order begins with the pools that need attention,
// followed by the fullest ones.
func orders() map[string]func(a, b PoolRow) int {
	name := func(a, b PoolRow) int { return cmp.Compare(a.Name, b.Name) }
	full := func(a, b PoolRow) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(a.Status.Available, b.Status.Available), name(a,
			b))
	}
	return map[string]func(a, b PoolRow) int{
		"": func(a, b PoolRow) int {
			if a.Attention != b.Attention {
				return map[bool]int{true: -1, false: 1}[a.Attention]
			}
			return full(a, b)
		},
		"name": name, "used": full,
		"free": func(a, b PoolRow) int {
			return cmp.Or(cmp.Compare(a.Status.Available, b.Status.Available), name(a,
				b))
		},
		"full": func(a, b PoolRow) int { return cmp.Or(cmp.Compare(a.soon(), b.soon()), full(a, b)) },
		"network": func(a, b PoolRow) int {
			return cmp.Or(cmp.Compare(resource.NetworkOf(a.Pool), resource.NetworkOf(b.Pool)), full(a, b))
		},
	}
}

// Orders returns the names of the orders of an overview.
func Orders() []string { return []string{"", "name", "used", "free", "full", "network"} }

func (p PoolRow) share() float64 {
	if p.Status.Capacity <= 0 {
		return 0
	}
	return float64(p.Used()) / float64(p.Status.Capacity)
}
