package view

import (
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
)

// Facts describes a host.
func (h *Host) Facts(s *app.App) (f Facts) {
	also := resource.JoinAddrs(slices.DeleteFunc(slices.Clone(h.Addrs), func(a netip.Addr) bool { return a == h.Host }))
	if also != "" {
		also = ", also " + also
	}
	f.add("Host", "%s", h.Host.String()+also)
	if n := h.Node; n != nil {
		f.add("Node", "%s", n.Name)
	}
	if state := h.State(); state != "" {
		color, since := terminal.Red, ""
		if state == resource.HostReady {
			color = terminal.Green
		}
		if h.Node != nil && !h.Node.Since.IsZero() {
			since = " for " + s.Age(h.Node.Since)
		}
		f.paint(state+since, color)
	}
	f.add("Holds", "%s", printer.OrNone(strings.TrimPrefix(resource.TakenText(len(h.Held), 0), ", ")))
	return f
}

// Findings returns the problems of a host, and the commands that fix them.
func (h *Host) Findings() (problems []string, next Steps) {
	add := func(problem, what, command string) {
		problems = append(problems, problem)
		next.add(what, command)
	}
	n := len(h.Held)
	release := "bcsnetctl release-host " + h.Host.String()
	switch {
	case h.State() == resource.HostGone && n > 0:
		add(fmt.Sprintf("no node has this IP, and %s %s in use", humanize.Plural(n, "address"),
			humanize.OneOr(n, "is", "are")),
			"if the machine is off for good", release)
	case h.State() == resource.HostGone && h.listedBy() != "":
		add("no node has this IP", "if the machine is off for good",
			fmt.Sprintf("bcsnetctl pool remove-host %s %s", h.listedBy(), h.Host))
	case h.State() == resource.HostNotReady && n > 0:
		add("the node is not ready", "if the machine is off for good", release)
	}
	if len(h.Pools) == 0 && h.State() != resource.HostGone {
		add("the host is in no pool and can draw no address", "let it draw",
			"bcsnetctl pool add-host POOL "+h.Host.String())
	}
	var strange []string
	for _, l := range h.Held {
		from := cmp.Or(h.parents[l.Pool], l.Pool)
		listed := slices.ContainsFunc(h.Pools, func(p resource.Pool) bool { return p.Name == from })
		if !listed && !slices.Contains(strange, from) {
			strange = append(strange, from)
		}
	}
	if len(strange) > 0 && len(h.Pools) > 0 {
		add("it holds addresses of pools that it is not in: "+humanize.List(strange), "let it draw from there",
			fmt.Sprintf("bcsnetctl pool add-host %s %s", strange[0], h.Host))
	}
	return problems, next
}
