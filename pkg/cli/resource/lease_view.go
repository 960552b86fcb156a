package resource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// LeaseObject returns an address and its holder as a field of a view.
func LeaseObject(l lease.Lease) map[string]any {
	o := map[string]any{"address": l.Addr.String(), "state": l.State.String()}
	if l.State == lease.Active {
		o["holder"] = l.Who()
		if l.Host.IsValid() {
			o["host"] = l.Host.String()
		}
	}
	if h := l.Other; h != nil {
		other := "secondAttachment"
		if l.FromSecond {
			other = "firstAttachment"
		}
		o[other] = map[string]any{"holder": h.Who(), "host": AddrText(h.Host), "container": h.ContainerID}
	}
	return o
}

// MigrationText names the other pod of a live migration: "migrates to default/vm-b on 10.0.0.12", or "migrates from
// ..." if the lease is seen from the second attachment. It is empty without a second attachment.
func MigrationText(l lease.Lease) string {
	h := l.Other
	if h == nil {
		return ""
	}
	text := "migrates to "
	if l.FromSecond {
		text = "migrates from "
	}
	if text += terminal.Visible(h.Who()); h.Host.IsValid() {
		text += " on " + h.Host.String()
	}
	return text
}

// Sides returns leases as seen from each of their attachments that match, in order. A migrating lease may occur twice.
func Sides(all []lease.Lease, match func(lease.Lease) bool) (sides []lease.Lease) {
	for _, l := range all {
		for side := range l.Attachments() {
			if match(side) {
				sides = append(sides, side)
			}
		}
	}
	return sides
}

// HeldBy describes the holders of addresses: "10.0.0.20 (default/web-0 on 10.0.0.11)".
func HeldBy(held []lease.Lease) []string {
	var out []string
	for _, l := range held {
		who := "reserved"
		switch {
		case l.State == lease.Active && l.Host.IsValid():
			who = terminal.Visible(l.Who()) + " on " + l.Host.String()
		case l.State == lease.Active:
			who = terminal.Visible(l.Who())
		}
		out = append(out, fmt.Sprintf("%s (%s)", l.Addr, who))
	}
	return out
}

// TakenText counts taken addresses: ", 3 active, 1 reserved"; empty if there are none.
func TakenText(active, reserved int) string {
	var b strings.Builder
	for _, of := range []struct {
		n    int
		what string
	}{{active, "active"}, {reserved, "reserved"}} {
		if of.n > 0 {
			fmt.Fprintf(&b, ", %d %s", of.n, of.what)
		}
	}
	return b.String()
}

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
