package view

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Found holds the found addresses without duplicates, and the matching kinds.
type Found struct {
	rows map[netip.Addr]lease.Lease
	by   map[string]int
	// prefix: only the beginnings of names match the text.
	prefix bool
}

func newFound() *Found {
	return &Found{rows: map[netip.Addr]lease.Lease{}, by: map[string]int{}}
}

func (f *Found) add(l lease.Lease, noun string) {
	f.rows[l.Addr] = l
	f.by[noun]++
}

// Exact reports whether something has exactly the name, not only one that begins with it.
func (f *Found) Exact() bool { return !f.prefix }

// Sorted returns the addresses in order.
func (f *Found) Sorted() []lease.Lease {
	var out []lease.Lease
	for _, l := range f.rows {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}

// Summary counts the addresses by what matched: "3 addresses: pod web* (2), --for name web* (1)".
func (f *Found) Summary(text string) string {
	var by []string
	for noun := range f.by {
		by = append(by, noun)
	}
	slices.SortFunc(by, func(a, b string) int { return cmp.Or(cmp.Compare(f.by[b], f.by[a]), cmp.Compare(a, b)) })
	if f.prefix {
		text += "*"
	}
	for i, noun := range by {
		if by[i] = noun + " " + text; len(by) > 1 {
			by[i] += fmt.Sprintf(" (%d)", f.by[noun])
		}
	}
	return fmt.Sprintf("%s: %s", humanize.Plural(len(f.rows), "address"), strings.Join(by, ", "))
}
