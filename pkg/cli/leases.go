package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// held are the addresses that the query finds and match takes, in order.
func (s *session) held(ctx context.Context, q leaseQuery, match func(ipam.Lease) bool) ([]ipam.Lease, error) {
	leases, err := s.leases()
	if err != nil {
		return nil, err
	}
	var out []ipam.Lease
	err = leases.Each(ctx, q.selector(), func(l ipam.Lease) error {
		if match(l) {
			out = append(out, l)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b ipam.Lease) int { return a.Addr.Compare(b.Addr) })
	return out, s.explain(err)
}

// maxSorted is how many addresses are kept to be sorted: a table of more is sorted in parts.
const maxSorted = 1 << 17

// leaseTable prints addresses as they come, in order, in memory that does not grow without end.
type leaseTable struct {
	w      io.Writer
	table  table[ipam.Lease]
	limit  int
	part   []ipam.Lease
	counts map[ipam.State]int
}

func (t *leaseTable) take(l ipam.Lease) error {
	t.counts[l.State]++
	if t.part = append(t.part, l); len(t.part) < t.limit {
		return nil
	}
	return t.flush()
}

func (t *leaseTable) flush() error {
	slices.SortFunc(t.part, func(a, b ipam.Lease) int { return a.Addr.Compare(b.Addr) })
	err := t.table.write(t.w, t.part)
	if len(t.part) > 0 {
		t.part, t.table.headers = t.part[:0], false
	}
	return err
}

// print prints what the query finds, and returns how many there were of each state.
func (q *leaseQuery) print(ctx context.Context, s *session, o *output, columns []column[ipam.Lease]) (map[ipam.State]int, error) {
	if o.printer != nil {
		return nil, q.printObjects(ctx, s, o)
	}
	leases, err := s.leases()
	if err != nil {
		return nil, err
	}
	t := &leaseTable{w: s.Out, table: newTable(o, columns), limit: maxSorted, counts: map[ipam.State]int{}}
	err = s.explain(leases.Each(ctx, q.selector(), t.take))
	return t.counts, errors.Join(err, t.flush())
}

// pageSize is how many objects one request asks for.
const pageSize = 500

func (q *leaseQuery) printObjects(ctx context.Context, s *session, o *output) error {
	c, err := s.dynamic()
	if err != nil {
		return err
	}
	var items []unstructured.Unstructured
	options := metav1.ListOptions{FieldSelector: q.selector(), Limit: pageSize}
	for {
		page, err := c.Resource(resource(v1.IPResource)).List(ctx, options)
		if err != nil {
			return s.explain(err)
		}
		items = append(items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	addr := func(u unstructured.Unstructured) netip.Addr {
		a, _ := ipam.ParseObjectName(u.GetName()) // what is no address comes first
		return a
	}
	slices.SortStableFunc(items, func(a, b unstructured.Unstructured) int { return addr(a).Compare(addr(b)) })
	return o.list(s.Out, items)
}

// printLeases prints addresses as a table, or as the objects that they are.
func (s *session) printLeases(o *output, columns []column[ipam.Lease], leases []ipam.Lease) error {
	if o.printer == nil {
		return newTable(o, columns).write(s.Out, leases)
	}
	var items []unstructured.Unstructured
	for _, l := range leases {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(store.Object(l))
		if err != nil {
			return err
		}
		o := unstructured.Unstructured{Object: content}
		o.SetManagedFields(nil)
		items = append(items, o)
	}
	return o.list(s.Out, items)
}

// leaseColumns are the columns of addresses; those of leases leave out the status.
func (s *session) leaseColumns(status bool) []column[ipam.Lease] {
	columns := []column[ipam.Lease]{
		{name: "ADDRESS", cell: func(l ipam.Lease) string { return l.Addr.String() }},
		{name: "POOL", cell: func(l ipam.Lease) string { return l.Pool }},
		{name: "STATUS", cell: func(l ipam.Lease) string { return l.State.String() }},
		{name: "HOST", cell: func(l ipam.Lease) string { return addrText(l.Host) }},
		{name: "NAMESPACE", cell: func(l ipam.Lease) string { return l.Namespace }},
		{name: "POD", cell: holderText},
		{name: "IF", cell: func(l ipam.Lease) string { return printers.EscapeTerminal(l.IfName) }},
		{name: "CONTAINER", wide: true, cell: func(l ipam.Lease) string { return printers.EscapeTerminal(l.ContainerID) }},
		{name: "GATEWAY", wide: true, cell: func(l ipam.Lease) string { return addrText(l.Gateway) }},
		{name: "AGE", cell: func(l ipam.Lease) string { return s.age(l.Updated) }},
	}
	if !status {
		columns = slices.DeleteFunc(columns, func(c column[ipam.Lease]) bool { return c.name == "STATUS" })
	}
	return columns
}

// holderText is the pod, or the owner where that is no pod.
func holderText(l ipam.Lease) string {
	if l.Owner != "" {
		return fmt.Sprintf("%s (owner)", printers.EscapeTerminal(l.Owner))
	}
	return l.PodName
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
