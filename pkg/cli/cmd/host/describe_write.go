package host

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// write prints the sections that have something to say.
func (v *hostDescribe) write(h *hostView) error {
	var b bytes.Buffer
	line := func(label, text string) { printer.Line(&b, 6, label+":", text) }
	also := resource.JoinAddrs(slices.DeleteFunc(slices.Clone(h.Addrs), func(a netip.Addr) bool { return a == h.Host }))
	if also != "" {
		also = ", also " + also
	}
	line("Host", h.Host.String()+also)
	if n := h.Node; n != nil {
		line("Node", n.Name)
	}
	if state := h.state(); state != "" {
		text := v.Terminal.Paint(stateColorOf(state), state)
		if h.Node != nil && !h.Node.Since.IsZero() {
			text += " for " + v.Age(h.Node.Since)
		}
		line("State", text)
	}
	line("Holds", printer.OrNone(strings.TrimPrefix(resource.TakenText(len(h.held), 0), ", ")))
	if err := v.poolsSection(&b, h); err != nil {
		return err
	}
	if err := printer.Indented(&b, "Leases", printer.Table[lease.Lease]{Headers: true,
		Columns: slices.DeleteFunc(resource.LeaseColumns(v.App, false),
			func(c printer.Column[lease.Lease]) bool { return c.Wide || c.Name == "HOST" })}, h.held); err != nil {
		return err
	}
	problems, next := h.findings()
	printer.Section(&b, "Problems", problems)
	for i := range next {
		next[i] = v.Called(next[i])
	}
	printer.Section(&b, "Next", next)
	_, err := v.Out.Write(b.Bytes())
	return err
}

func stateColorOf(state string) terminal.Color {
	if state == resource.HostReady {
		return terminal.Green
	}
	return terminal.Red
}

// poolsSection lists the pools that the host may draw from.
func (v *hostDescribe) poolsSection(b *bytes.Buffer, h *hostView) error {
	held := map[string]int{}
	for _, l := range h.held {
		held[cmp.Or(h.parents[l.Pool], l.Pool)]++
	}
	return printer.Indented(b, "Pools", printer.Table[resource.Pool]{Headers: true,
		Columns: []printer.Column[resource.Pool]{
			{Name: "POOL", Cell: func(p resource.Pool) string { return p.Name }},
			{Name: "CIDR", Cell: func(p resource.Pool) string { return resource.CidrOf(p.BCSNetPool) }},
			{Name: "HELD", Cell: func(p resource.Pool) string { return fmt.Sprint(held[p.Name]) }},
			{Name: "FREE", Cell: func(p resource.Pool) string {
				if !resource.Counted(p.BCSNetPool) {
					return ""
				}
				return app.Count(p.Status.Available)
			}},
			{Name: "STATE", Cell: func(p resource.Pool) string {
				word, _ := resource.PoolState(v.App, p.BCSNetPool)
				return v.Terminal.Paint(resource.PoolStateColor(v.App, p.BCSNetPool), word)
			}},
		}}, h.pools)
}

// findings lists what is wrong with a host, and the commands that mend it.
func (h *hostView) findings() (problems, next []string) {
	add := func(problem, what, command string) {
		problems = append(problems, "  "+problem)
		next = append(next, "  "+what+": "+command)
	}
	n := len(h.held)
	release := "bcsnetctl release-host " + h.Host.String()
	switch {
	case h.state() == resource.HostGone && n > 0:
		add(fmt.Sprintf("no node has this IP, and %s %s in use", humanize.Plural(n, "address"),
			humanize.OneOr(n, "is", "are")),
			"if the machine is off for good", release)
	case h.state() == resource.HostGone && h.listedBy() != "":
		add("no node has this IP", "if the machine is off for good",
			fmt.Sprintf("bcsnetctl pool remove-host %s %s", h.listedBy(), h.Host))
	case h.state() == resource.HostNotReady && n > 0:
		add("the node is not ready", "if the machine is off for good", release)
	}
	if len(h.pools) == 0 && h.state() != resource.HostGone {
		add("the host is in no pool and can draw no address", "let it draw", "bcsnetctl pool add-host POOL "+h.Host.String())
	}
	var strange []string
	for _, l := range h.held {
		from := cmp.Or(h.parents[l.Pool], l.Pool)
		listed := slices.ContainsFunc(h.pools, func(p resource.Pool) bool { return p.Name == from })
		if !listed && !slices.Contains(strange, from) {
			strange = append(strange, from)
		}
	}
	if len(strange) > 0 && len(h.pools) > 0 {
		add("it holds addresses of pools that it is not in: "+humanize.List(strange), "let it draw from there",
			fmt.Sprintf("bcsnetctl pool add-host %s %s", strange[0], h.Host))
	}
	return problems, next
}
