package address

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// findings holds addresses, each once, and by what they were found.
type findings struct {
	rows map[netip.Addr]lease.Lease
	by   map[string]int
}

func newFindings() *findings {
	return &findings{rows: map[netip.Addr]lease.Lease{}, by: map[string]int{}}
}

func (f *findings) add(l lease.Lease, noun string) {
	f.rows[l.Addr] = l
	f.by[noun]++
}

func (f *findings) sorted() []lease.Lease {
	var out []lease.Lease
	for _, l := range f.rows {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}

// summary puts into words how many there are and what matched: "3 addresses: pod web* (2), --for name web* (1)".
func (f *findings) summary(text string, prefix bool) string {
	var by []string
	for noun := range f.by {
		by = append(by, noun)
	}
	slices.SortFunc(by, func(a, b string) int { return cmp.Or(cmp.Compare(f.by[b], f.by[a]), cmp.Compare(a, b)) })
	if prefix {
		text += "*"
	}
	for i, noun := range by {
		if by[i] = noun + " " + text; len(by) > 1 {
			by[i] += fmt.Sprintf(" (%d)", f.by[noun])
		}
	}
	return fmt.Sprintf("%s: %s", humanize.Plural(len(f.rows), "address"), strings.Join(by, ", "))
}
