package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Outdated recognizes leases that were given other settings than their pools have now. A nil one recognizes none.
type Outdated struct {
	pools  *index.Index
	counts map[string]*lease.Outdated
}

// NewOutdated reads the pools.
func NewOutdated(ctx context.Context, s *app.App) (*Outdated, error) {
	all, err := AllPools(ctx, s)
	return &Outdated{pools: IndexOf(s, all), counts: map[string]*lease.Outdated{}}, err
}

// of returns the counts of a pool and its present settings; nil if the pool is missing or invalid.
func (o *Outdated) of(pool string) (*lease.Outdated, lease.Settings) {
	p, ok := o.pools.Pools.Get(pool)
	if !ok || !p.Valid() {
		return nil, lease.Settings{}
	}
	if o.counts[pool] == nil {
		o.counts[pool] = lease.NewOutdated(p.Settings())
	}
	return o.counts[pool], p.Settings()
}

// add counts a lease, and reports whether it is outdated.
func (o *Outdated) add(l lease.Lease) bool {
	counts, _ := o.of(l.Pool)
	if counts == nil {
		return false
	}
	counts.Add(l)
	names, _ := counts.Of(l)
	return len(names) > 0
}

// text describes the outdated settings of a lease: "VLAN 100, now 200; no MTU, now 9000".
func (o *Outdated) text(l lease.Lease) string {
	counts, now := o.of(l.Pool)
	if counts == nil {
		return ""
	}
	for side := range l.Attachments() {
		if text := SettingChanges(side.Given, now); text != "" {
			return text
		}
	}
	return ""
}

// in inserts the column OUTDATED before the last column.
func (o *Outdated) in(columns []printer.Column[lease.Lease]) []printer.Column[lease.Lease] {
	if o == nil {
		return columns
	}
	return slices.Insert(columns, len(columns)-1, printer.Column[lease.Lease]{Name: "OUTDATED", Cell: o.text})
}

// Remark notes how many leases have unknown settings.
func (o *Outdated) Remark(s *app.App) {
	if o == nil {
		return
	}
	unknown := 0
	for _, c := range o.counts {
		unknown += c.Unknown
	}
	if unknown > 0 {
		s.Say.Note("%s", UnknownGiven(unknown))
	}
}

// UnknownGiven says that n addresses have unknown settings.
func UnknownGiven(n int) string {
	return fmt.Sprintf("for %s in use the settings that %s given are unknown", humanize.Plural(n, "address"),
		humanize.OneOr(n, "it was", "they were"))
}

// OutdatedText counts outdated leases by setting: "3 leases have other settings than the pool: VLAN (3), MTU (1)". It
// is empty if there are none.
func OutdatedText(o *lease.Outdated) string {
	if o == nil || o.Leases == 0 {
		return ""
	}
	var parts []string
	for _, name := range lease.SettingNames() {
		if n := o.By[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", SettingWord(name), n))
		}
	}
	text := humanize.Plural(o.Leases, "lease") + humanize.OneOr(o.Leases, " has", " have") +
		" other settings than the pool: " + strings.Join(parts, ", ")
	if o.Unknown > 0 {
		text += "; " + UnknownGiven(o.Unknown)
	}
	return text
}

// OutdatedObject returns the counts for -o json and similar formats.
func OutdatedObject(o *lease.Outdated) map[string]any {
	by := map[string]any{}
	for name, n := range o.By {
		by[name] = int64(n)
	}
	return map[string]any{"leases": int64(o.Leases), "by": by, "unknown": int64(o.Unknown)}
}
