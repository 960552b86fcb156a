package cli

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// write prints the sections that have something to say.
func (v *hostDescribe) write(h *hostView) error {
	var b bytes.Buffer
	line := func(label, text string) { fmt.Fprintf(&b, "%-6s %s\n", label+":", text) }
	also := joinAddrs(slices.DeleteFunc(slices.Clone(h.addrs), func(a netip.Addr) bool { return a == h.host }))
	if also != "" {
		also = ", also " + also
	}
	line("Host", h.host.String()+also)
	if n := h.node; n != nil {
		line("Node", n.name)
	}
	if state := h.state(); state != "" {
		text := v.Terminal.Paint(stateColorOf(state), state)
		if h.node != nil && !h.node.since.IsZero() {
			text += " for " + v.Age(h.node.since)
		}
		line("State", text)
	}
	line("Holds", orNone(strings.TrimPrefix(takenText(len(h.held), 0), ", ")))
	if err := v.poolsSection(&b, h); err != nil {
		return err
	}
	if err := indented(&b, "Leases", printer.Table[ipam.Lease]{Headers: true, Columns: slices.DeleteFunc(leaseColumns(v.App, false),
		func(c printer.Column[ipam.Lease]) bool { return c.Wide || c.Name == "HOST" })}, h.held); err != nil {
		return err
	}
	problems, next := h.findings()
	section(&b, "Problems", problems)
	for i := range next {
		next[i] = v.Called(next[i])
	}
	section(&b, "Next", next)
	_, err := v.Out.Write(b.Bytes())
	return err
}

func stateColorOf(state string) terminal.Color {
	if state == hostReady {
		return terminal.Green
	}
	return terminal.Red
}

// poolsSection lists the pools that the host may draw from.
func (v *hostDescribe) poolsSection(b *bytes.Buffer, h *hostView) error {
	held := map[string]int{}
	for _, l := range h.held {
		held[l.Pool]++
	}
	return indented(b, "Pools", printer.Table[pool]{Headers: true, Columns: []printer.Column[pool]{
		{Name: "POOL", Cell: func(p pool) string { return p.Name }},
		{Name: "CIDR", Cell: func(p pool) string { return cidrOf(p.BCSNetPool) }},
		{Name: "HELD", Cell: func(p pool) string { return fmt.Sprint(held[p.Name]) }},
		{Name: "FREE", Cell: func(p pool) string {
			if !counted(p.BCSNetPool) {
				return ""
			}
			return app.Count(p.Status.Available)
		}},
		{Name: "STATE", Cell: func(p pool) string {
			word, _ := poolState(v.App, p.BCSNetPool)
			return v.Terminal.Paint(poolStateColor(v.App, p.BCSNetPool), word)
		}},
	}}, h.pools)
}

// findings are what is wrong with a host, and the commands that mend it.
func (h *hostView) findings() (problems, next []string) {
	add := func(problem, what, command string) {
		problems = append(problems, "  "+problem)
		next = append(next, "  "+what+": "+command)
	}
	n := len(h.held)
	release := "bcsnetctl release-host " + h.host.String()
	switch {
	case h.state() == hostGone && n > 0:
		add(fmt.Sprintf("no node has this IP, and %s %s in use", humanize.Plural(n, "address"), humanize.OneOr(n, "is", "are")),
			"if the machine is off for good", release)
	case h.state() == hostGone && h.listedBy() != "":
		add("no node has this IP", "if the machine is off for good", fmt.Sprintf("bcsnetctl pool remove-host %s %s", h.listedBy(), h.host))
	case h.state() == hostNotReady && n > 0:
		add("the node is not ready", "if the machine is off for good", release)
	}
	if len(h.pools) == 0 && h.state() != hostGone {
		add("the host is in no pool and can draw no address", "let it draw", "bcsnetctl pool add-host POOL "+h.host.String())
	}
	var strange []string
	for _, l := range h.held {
		listed := slices.ContainsFunc(h.pools, func(p pool) bool { return p.Name == l.Pool })
		if !listed && !slices.Contains(strange, l.Pool) {
			strange = append(strange, l.Pool)
		}
	}
	if len(strange) > 0 && len(h.pools) > 0 {
		add("it holds addresses of pools that it is not in: "+humanize.List(strange), "let it draw from there",
			fmt.Sprintf("bcsnetctl pool add-host %s %s", strange[0], h.host))
	}
	return problems, next
}
