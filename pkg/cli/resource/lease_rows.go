package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// LeaseRow is an address in a list. Object, Text and Key are set only if the output needs them: the object, its
// encoding, and its sort key.
type LeaseRow struct {
	*lease.Lease
	Object *unstructured.Unstructured
	Text   []byte
	Key    *printer.SortKey
}

// Each calls fn with the addresses of the query in the order of names. Without objects it decodes the answer as a
// stream, which needs the least time and memory.
func (q *LeaseQuery) Each(ctx context.Context, s *app.App, objects bool, fn func(LeaseRow) error) error {
	if objects {
		return q.eachObject(ctx, s, fn)
	}
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	show := func(l lease.Lease) error {
		if q.leavesOut(l) {
			return nil
		}
		l.PodUID, l.Superseded = "", nil // no table shows these, and many leases may wait
		if !q.Statuses.IsCooling(l) {
			l.History = ""
		}
		return fn(LeaseRow{Lease: &l})
	}
	err = leases.EachLabelled(ctx, q.Selector(), q.Labels, show)
	if err == nil && q.byHolder() && q.Labels == "" {
		err = q.eachSecond(ctx, leases, show)
	}
	return Explain(s, err)
}

// eachSecond calls fn with the addresses whose second attachment, but not the first, matches the query.
func (q *LeaseQuery) eachSecond(ctx context.Context, leases *store.Client, fn func(lease.Lease) error) error {
	more, err := leases.Migrating(ctx, q.finds)
	for _, l := range more {
		if err == nil && l.FromSecond {
			err = fn(l)
		}
	}
	return err
}

func (q *LeaseQuery) eachObject(ctx context.Context, s *app.App, fn func(LeaseRow) error) error {
	c, err := s.Dynamic()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{FieldSelector: q.Selector(), LabelSelector: q.Labels, Limit: PageSize}
	for {
		page, err := c.Resource(Of(v1.IPResource)).List(ctx, options)
		if err != nil {
			return Explain(s, err)
		}
		for i := range page.Items {
			l, err := ReadLease(&page.Items[i])
			if err != nil || q.leavesOut(l) {
				continue // not an address; the schema refuses such names
			}
			if err := fn(LeaseRow{Lease: &l, Object: &page.Items[i]}); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue != "" {
			continue
		}
		if !q.byHolder() || options.LabelSelector != "" {
			return nil
		}
		leases, err := s.Leases()
		if err != nil {
			return err
		}
		return Explain(s, q.eachSecond(ctx, leases, func(l lease.Lease) error {
			if q.leavesOut(l) {
				return nil
			}
			r, err := WithObject(LeaseRow{Lease: &l})
			if err != nil {
				return err
			}
			return fn(r)
		}))
	}
}

// WithObject adds to a row the object that it would have, unless it has one.
func WithObject(r LeaseRow) (LeaseRow, error) {
	if r.Object != nil {
		return r, nil
	}
	o := store.Object(*r.Lease)
	o.ManagedFields = nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	r.Object = &unstructured.Unstructured{Object: content}
	return r, err
}

// LeaseSortKey returns the sort key of an address.
func LeaseSortKey(s *printer.SortBy, l lease.Lease) (printer.SortKey, error) {
	r, err := WithObject(LeaseRow{Lease: &l})
	if err != nil {
		return printer.SortKey{}, err
	}
	return s.Key(r.Object.Object)
}
