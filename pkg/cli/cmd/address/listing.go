package address

import (
	"io"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// listing prints sorted rows as they come, and counts them.
type listing struct {
	output *printer.Output
	table  *printer.GrowingTable[lease.Lease]
	w      io.Writer
	// stream prints objects as they come; nil for formats that need the whole list.
	stream *printer.ListStream
	status string // only this one; empty is any
	free   *freeAddresses
	counts map[lease.State]int
	// statuses recognizes cooling and draining addresses, which cooling and draining count.
	statuses          *resource.Statuses
	cooling, draining int
	// waiting holds the rows of a format that needs the whole list.
	waiting []resource.LeaseRow
}

// needsObjects reports whether the output needs objects in addition to leases.
func (l *listing) needsObjects() bool {
	return l.output.Sort.On() || l.output.Printer != nil && !l.output.Names()
}

// read prepares a row for printing. It drops the object, which is many times as large as the lease, unless it is
// printed.
func (l *listing) read(r resource.LeaseRow) (_ resource.LeaseRow, err error) {
	if !l.needsObjects() {
		return r, nil
	}
	if r, err = resource.WithObject(r); err != nil {
		return r, err
	}
	if l.output.Sort.On() {
		key, err := l.output.Sort.Key(r.Object.Object)
		if err != nil {
			return r, err
		}
		r.Key = &key
	}
	switch {
	case l.stream != nil:
		r.Text, err = l.stream.Text(r.Object)
		// the text says the rest
		r.Object, r.Lease = nil, &lease.Lease{Addr: r.Addr, State: r.State, Version: r.Version}
	case l.output.Printer == nil || l.output.Names():
		r.Object = nil
	}
	return r, err
}

// part prints sorted rows after adding the free addresses less than below. The last part has no valid below.
func (l *listing) part(rows []resource.LeaseRow, below netip.Addr) error {
	rows, err := l.free.between(rows, below)
	if err != nil {
		return err
	}
	shown := rows[:0]
	for _, r := range rows {
		if l.status != "" && l.status != r.State.String() {
			continue
		}
		if r.Version == 0 { // one of the free
			if r, err = l.read(r); err != nil {
				return err
			}
		}
		shown = append(shown, r)
		l.counts[r.State]++
		switch {
		case l.statuses.IsCooling(*r.Lease):
			l.cooling++
		case l.statuses.IsDraining(*r.Lease):
			l.draining++
		}
	}
	if l.waits() {
		l.waiting = append(l.waiting, shown...)
		return nil
	}
	if below.IsValid() {
		l.table.Begin()
	}
	return l.print(shown)
}

// waits reports whether rows can be printed only at the end.
func (l *listing) waits() bool {
	return l.output.Sort.On() || l.stream == nil && !l.output.InParts()
}

// end prints the waiting rows and the end of the list.
func (l *listing) end() error {
	if l.waits() {
		if err := printer.Sorted(&l.output.Sort, l.waiting,
			func(r resource.LeaseRow) (printer.SortKey, error) { return *r.Key, nil }); err != nil {
			return err
		}
		if err := l.print(l.waiting); err != nil {
			return err
		}
	}
	if l.stream == nil {
		return nil
	}
	return l.stream.Close(l.w)
}

func (l *listing) print(rows []resource.LeaseRow) error {
	if l.output.Printer == nil {
		leases := app.Map(rows, func(r resource.LeaseRow) lease.Lease { return *r.Lease })
		return l.table.Write(l.w, leases)
	}
	if l.stream != nil {
		return l.stream.Write(l.w, func(yield func([]byte) bool) {
			for _, r := range rows {
				if !yield(r.Text) {
					return
				}
			}
		})
	}
	items := make([]unstructured.Unstructured, 0, len(rows))
	for _, r := range rows {
		r, err := resource.WithObject(r)
		if err != nil {
			return err
		}
		items = append(items, *r.Object)
	}
	return l.output.List(l.w, items)
}
