package resource

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// PrintLeases prints addresses as a table or as objects.
func PrintLeases(s *app.App, o *printer.Output, columns []printer.Column[lease.Lease], leases []lease.Lease) error {
	if o.Printer == nil {
		return printer.NewTable(o, columns).Write(s.Out, leases)
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
	return o.List(s.Out, items)
}

// shortID is the length of container IDs in tables, as in crictl. ip find accepts such a prefix.
const shortID = 13

// LeaseColumns returns the columns of a list of addresses. A list of leases has no status.
func LeaseColumns(s *app.App, status bool) []printer.Column[lease.Lease] {
	columns := []printer.Column[lease.Lease]{
		{Name: "ADDRESS", Least: 15, Cell: func(l lease.Lease) string { return l.Addr.String() }},
		{Name: "POOL", Least: 12, Cell: func(l lease.Lease) string { return l.Pool }},
		{Name: "STATUS", Least: 9, Cell: StatusText},
		{Name: "HOST", Least: 15, Cell: func(l lease.Lease) string { return AddrText(l.Host) }},
		{Name: "NAMESPACE", Least: 16, Cell: func(l lease.Lease) string { return l.Namespace }},
		{Name: "POD", Least: 32, Cell: HolderText},
		{Name: "IF", Least: 4, Cell: func(l lease.Lease) string { return l.IfName }},
		{
			Name: "CONTAINER", Wide: true, Least: 13,
			Cell:  func(l lease.Lease) string { return l.ContainerID[:min(len(l.ContainerID), shortID)] },
			Whole: func(l lease.Lease) string { return l.ContainerID },
		},
		{
			Name: "CNINETWORK", Wide: true, Least: 10,
			Cell: func(l lease.Lease) string { return l.CNINetwork },
		},
		{Name: "GATEWAY", Wide: true, Least: 15, Cell: func(l lease.Lease) string { return AddrText(l.UsedGateway()) }},
		{Name: "CLAIM", Wide: true, Least: 16, Cell: func(l lease.Lease) string { return l.Claim }},
		{Name: "AGE", Cell: func(l lease.Lease) string { return s.Age(l.Updated) }},
	}
	if !status {
		columns = slices.DeleteFunc(columns, func(c printer.Column[lease.Lease]) bool { return c.Name == "STATUS" })
	}
	return columns
}
