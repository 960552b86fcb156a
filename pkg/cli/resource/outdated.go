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

// Outdated knows which leases were given other settings than their pools have now. A nil one knows none.
type Outdated struct {
	pools  *index.Index
	counts map[string]*lease.Outdated
}

// NewOutdated reads the pools.
func NewOutdated(ctx context.Context, s *app.App) (*Outdated, error) {
	all, err := AllPools(ctx, s)
	return &Outdated{pools: IndexOf(s, all), counts: map[string]*lease.Outdated{}}, err
}

// of returns the counts of a pool, and what it says now; nil if it is not there or says nothing that can be read.
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

// text says in what a lease is outdated: "VLAN 100, now 200; no MTU, now 9000".
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

// in adds a column before the last that says in what leases are outdated.
func (o *Outdated) in(columns []printer.Column[lease.Lease]) []printer.Column[lease.Lease] {
	if o == nil {
		return columns
	}
	return slices.Insert(columns, len(columns)-1, printer.Column[lease.Lease]{Name: "OUTDATED", Cell: o.text})
}

// Remark notes of how many leases it is not known whether they are outdated.
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

// UnknownGiven says of how many leases it is not known what they were given.
func UnknownGiven(n int) string {
	return fmt.Sprintf("of %s in use it is not known what %s given", humanize.Plural(n, "address"),
		humanize.OneOr(n, "it was", "they were"))
}

// OutdatedText counts outdated leases by what is outdated: "3 leases were given something else: VLAN (3), MTU (1)".
// It is empty if there are none.
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
	text := humanize.Plural(o.Leases, "lease") + humanize.OneOr(o.Leases, " was", " were") + " given something else: " +
		strings.Join(parts, ", ")
	if o.Unknown > 0 {
		text += "; " + UnknownGiven(o.Unknown)
	}
	return text
}

// OutdatedObject returns the same for -o json and the like.
func OutdatedObject(o *lease.Outdated) map[string]any {
	by := map[string]any{}
	for name, n := range o.By {
		by[name] = int64(n)
	}
	return map[string]any{"leases": int64(o.Leases), "by": by, "unknown": int64(o.Unknown)}
}
