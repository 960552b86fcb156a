package resource

import (
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// LeaseObject returns an address and who has it as a part of an object that is a view.
func LeaseObject(l lease.Lease) map[string]any {
	o := map[string]any{"address": l.Addr.String(), "state": l.State.String()}
	if l.State == lease.Active {
		o["holder"] = l.Who()
		if l.Host.IsValid() {
			o["host"] = l.Host.String()
		}
	}
	return o
}

// HeldBy describes who has addresses: "10.0.0.20 (default/web-0 on 10.0.0.11)".
func HeldBy(held []lease.Lease) []string {
	var out []string
	for _, l := range held {
		who := "reserved"
		switch {
		case l.State == lease.Active && l.Host.IsValid():
			who = printers.EscapeTerminal(l.Who()) + " on " + l.Host.String()
		case l.State == lease.Active:
			who = printers.EscapeTerminal(l.Who())
		}
		out = append(out, fmt.Sprintf("%s (%s)", l.Addr, who))
	}
	return out
}

// TakenText counts the addresses that are taken: ", 3 active, 1 reserved"; empty where none is.
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
