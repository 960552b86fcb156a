package cli

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// leaseRow is an address in a list. Its object comes along where it is printed, as text where that can be
// made at once, and what it is sorted by where that is asked for.
type leaseRow struct {
	*ipam.Lease
	object *unstructured.Unstructured
	text   []byte
	key    *printer.SortKey
}

// pageSize is how many objects one request asks for.
const pageSize = 500

// each calls fn with what the query finds, in the order of the names. Without objects it reads the answer as a
// stream, which takes the least time and memory.
func (q *leaseQuery) each(ctx context.Context, s *app.App, objects bool, fn func(leaseRow) error) error {
	if objects {
		return q.eachObject(ctx, s, fn)
	}
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	return explainError(s, leases.EachLabelled(ctx, q.selector(), q.labels, func(l ipam.Lease) error {
		l.PodUID, l.Superseded = "", nil // no table shows these, and many leases may wait
		if !q.rests.has(l) {
			l.History = ""
		}
		return fn(leaseRow{Lease: &l})
	}))
}

func (q *leaseQuery) eachObject(ctx context.Context, s *app.App, fn func(leaseRow) error) error {
	c, err := s.Dynamic()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{FieldSelector: q.selector(), LabelSelector: q.labels, Limit: pageSize}
	for {
		page, err := c.Resource(resource(v1.IPResource)).List(ctx, options)
		if err != nil {
			return explainError(s, err)
		}
		for i := range page.Items {
			l, err := readLease(&page.Items[i])
			if err != nil {
				continue // no address; the schema refuses such names
			}
			if err := fn(leaseRow{Lease: &l, object: &page.Items[i]}); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func readLease(u *unstructured.Unstructured) (ipam.Lease, error) {
	var o v1.BCSNetIP
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return ipam.Lease{}, fmt.Errorf("address %s cannot be read: %w", u.GetName(), err)
	}
	return store.Lease(&o, false)
}

// withObject gives a row without an object the one that it would have.
func withObject(r leaseRow) (leaseRow, error) {
	if r.object != nil {
		return r, nil
	}
	o := store.Object(*r.Lease)
	o.ManagedFields = nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	r.object = &unstructured.Unstructured{Object: content}
	return r, err
}

// leaseSortKey is what an address is sorted by.
func leaseSortKey(s *printer.SortBy, l ipam.Lease) (printer.SortKey, error) {
	r, err := withObject(leaseRow{Lease: &l})
	if err != nil {
		return printer.SortKey{}, err
	}
	return s.Key(r.object.Object)
}

// listing prints rows as they come in order, and counts them.
type listing struct {
	output *printer.Output
	table  *printer.GrowingTable[ipam.Lease]
	w      io.Writer
	// stream prints the formats of objects that need not wait for the end; nil for others.
	stream *printer.ListStream
	status string // only this one; empty is any
	free   *freeAddresses
	counts map[ipam.State]int
	rests  *rests
	// cooling is how many of them rest.
	cooling int
	// kept are rows that cannot be printed before all are known.
	kept []leaseRow
}

// needsObjects is true when leases alone do not tell what to print.
func (l *listing) needsObjects() bool {
	return l.output.Sort.On() || l.output.Printer != nil && !l.output.Names()
}

// read completes a row that was read. Objects are many times as large as leases, and kept only to be printed.
func (l *listing) read(r leaseRow) (_ leaseRow, err error) {
	if !l.needsObjects() {
		return r, nil
	}
	if r, err = withObject(r); err != nil {
		return r, err
	}
	if l.output.Sort.On() {
		key, err := l.output.Sort.Key(r.object.Object)
		if err != nil {
			return r, err
		}
		r.key = &key
	}
	switch {
	case l.stream != nil:
		r.text, err = l.stream.Text(r.object)
		r.object, r.Lease = nil, &ipam.Lease{Addr: r.Addr, State: r.State, Version: r.Version} // the text says the rest
	case l.output.Printer == nil || l.output.Names():
		r.object = nil
	}
	return r, err
}

// part prints the next rows, the last below an address that is not valid.
func (l *listing) part(rows []leaseRow, below netip.Addr) error {
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
		if l.counts[r.State]++; l.rests.has(*r.Lease) {
			l.cooling++
		}
	}
	if l.keeps() {
		l.kept = append(l.kept, shown...)
		return nil
	}
	if below.IsValid() {
		l.table.Begin()
	}
	return l.print(shown)
}

// keeps is true when nothing can be printed before all is known.
func (l *listing) keeps() bool {
	return l.output.Sort.On() || l.stream == nil && !l.output.InParts()
}

// end prints what was kept, and the end of the list.
func (l *listing) end() error {
	if l.keeps() {
		if err := printer.Sorted(&l.output.Sort, l.kept, func(r leaseRow) (printer.SortKey, error) { return *r.key, nil }); err != nil {
			return err
		}
		if err := l.print(l.kept); err != nil {
			return err
		}
	}
	if l.stream == nil {
		return nil
	}
	return l.stream.Close(l.w)
}

func (l *listing) print(rows []leaseRow) error {
	if l.output.Printer == nil {
		leases := make([]ipam.Lease, 0, len(rows))
		for _, r := range rows {
			leases = append(leases, *r.Lease)
		}
		return l.table.Write(l.w, leases)
	}
	if l.stream != nil {
		return l.stream.Write(l.w, func(yield func([]byte) bool) {
			for _, r := range rows {
				if !yield(r.text) {
					return
				}
			}
		})
	}
	items := make([]unstructured.Unstructured, 0, len(rows))
	for _, r := range rows {
		r, err := withObject(r)
		if err != nil {
			return err
		}
		items = append(items, *r.object)
	}
	return l.output.List(l.w, items)
}
