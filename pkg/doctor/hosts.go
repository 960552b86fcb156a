package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

func host(a netip.Addr) Object { return Object{"host", a.String()} }

// hostsInNoPool finds hosts that hold addresses but may draw from no pool.
func hostsInNoPool(f *facts) (out []Finding) {
	for _, h := range inOrder(f.active) {
		gone := len(f.Nodes) > 0 && !f.nodes.Claimed(h)
		if h.IsValid() && !gone && !f.drawsFrom(h) {
			out = append(out, Finding{
				Object: host(h), Fix: "bcsnetctl pool add-host POOL " + h.String(),
				Cause: fmt.Sprintf("%s in use on it, but no pool lists it", humanize.Plural(f.active[h], "address")),
			})
		}
	}
	return out
}

func nodesInNoPool(f *facts) (out []Finding) {
	for _, n := range f.Nodes {
		if len(f.Pools) > 0 && len(n.Addrs) > 0 && !slices.ContainsFunc(n.Addrs, f.drawsFrom) {
			out = append(out, Finding{
				Object: Object{"node", n.Name}, Fix: "bcsnetctl pool add-host POOL " + n.Addrs[0].String(),
				Cause: fmt.Sprintf("no pool lists %s", addrs(n.Addrs)),
			})
		}
	}
	return out
}

// hostsGone returns a check for hosts whose address no node has: the hosts that hold addresses if holding is set, else
// the others.
func hostsGone(holding bool) func(*facts) []Finding {
	return func(f *facts) (out []Finding) {
		if len(f.Nodes) == 0 {
			return nil // a cluster that has no nodes (yet) says nothing about hosts
		}
		known := map[netip.Addr]bool{}
		for h := range f.listed {
			known[h] = true
		}
		for h := range f.active {
			known[h] = h.IsValid()
		}
		for _, h := range inOrder(known) {
			if !known[h] || f.nodes.Claimed(h) || f.active[h] > 0 != holding {
				continue
			}
			pools := slices.Sorted(slices.Values(f.listed[h]))
			found := Finding{Object: host(h), Pools: pools}
			if holding {
				found.Cause = fmt.Sprintf("no node has this IP; %s in use on it", humanize.Plural(f.active[h],
					"address"))
				found.Fix = fmt.Sprintf("bcsnetctl release-host %s --dry-run=client", h)
			} else {
				found.Cause = fmt.Sprintf("no node has this IP; %s %s %s it", humanize.OneOr(len(pools), "pool",
					"pools"),
					humanize.List(pools), humanize.OneOr(len(pools), "lists", "list"))
				found.Fix = fmt.Sprintf("bcsnetctl pool remove-host %s %s", pools[0], h)
			}
			out = append(out, found)
		}
		return out
	}
}

// emptyHostSubnets finds host subnets without nodes.
func emptyHostSubnets(f *facts) (out []Finding) {
	if len(f.Nodes) == 0 {
		return nil // a cluster that has no nodes (yet) says nothing about hosts
	}
	for _, p := range f.covering {
		for _, n := range p.HostSubnets.Sorted() {
			if !slices.ContainsFunc(f.nodes.Addrs(), n.Contains) {
				out = append(out, onPool(p, fmt.Sprintf("no node lies in its host subnet %s", n),
					"bcsnetctl pool edit "+p.Name))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return out
}

// emptyHostSelectors finds host selectors that match no node with a usable address.
func emptyHostSelectors(f *facts) []Finding {
	return eachPool(func(f *facts, p *Pool) (Finding, bool) {
		if p.HostSelector == nil || len(p.Selected) > 0 || p.NoHosts() || len(f.Nodes) == 0 {
			return Finding{}, false
		}
		return onPool(p, fmt.Sprintf("its host selector %s matches no node that has an InternalIP", p.HostSelector),
			fmt.Sprintf("kubectl get nodes -l '%s'", p.HostSelector)), true
	})(f)
}

// duplicateHosts finds addresses that more than one node has, by its own status or by the annotation for further
// addresses. An address that is annotated twice, or that another node has by its status, is not accepted from an
// annotation.
func duplicateHosts(f *facts) (out []Finding) {
	own, given := map[netip.Addr][]string{}, map[netip.Addr][]string{}
	for _, n := range f.Nodes {
		for _, a := range n.Addrs {
			by := own
			if slices.Contains(n.Further, a) {
				by = given
			}
			by[a] = append(by[a], n.Name)
		}
	}
	for _, a := range inOrder(own) {
		names := slices.Compact(slices.Sorted(slices.Values(own[a])))
		if len(names) > 1 {
			out = append(out, Finding{
				Object: host(a), Cause: fmt.Sprintf("nodes %s have the same IP", humanize.List(names)),
				Fix: "kubectl get nodes -o wide",
			})
		}
	}
	for _, a := range inOrder(given) {
		names := slices.Sorted(slices.Values(given[a]))
		has := slices.Compact(slices.Sorted(slices.Values(own[a])))
		cause := fmt.Sprintf("the annotation of nodes %s names it", humanize.List(names))
		mend := fmt.Sprintf("kubectl annotate node NODE %s-", hosts.Annotation)
		switch {
		case len(has) > 0:
			mend = strings.Replace(mend, "NODE", names[0], 1)
			cause = fmt.Sprintf("it is the IP of node %s, and the annotation of node %s names it", humanize.List(has),
				humanize.List(names))
		case len(names) == 1:
			continue
		}
		out = append(out, Finding{Object: host(a), Cause: cause, Fix: mend})
	}
	return out
}

// unreadAddresses finds parts of annotations with further addresses that are none, and Nodes with more addresses than
// count.
func unreadAddresses(f *facts) (out []Finding) {
	for _, n := range f.Nodes {
		if n.Uncounted > 0 {
			out = append(out, Finding{
				Object: Object{"node", n.Name},
				Fix:    fmt.Sprintf("kubectl get node %s -o jsonpath={.status.addresses}", n.Name),
				Cause: fmt.Sprintf("its status has %s beyond the %d that count",
					humanize.Plural(n.Uncounted, "address"), hosts.MostOfStatus),
			})
		}
		if len(n.Unread) == 0 {
			continue
		}
		var parts []string
		for _, text := range n.Unread {
			parts = append(parts, strconv.Quote(text))
		}
		out = append(out, Finding{
			Object: Object{"node", n.Name},
			Fix:    fmt.Sprintf("kubectl annotate node %s --overwrite %s=IP,IP", n.Name, hosts.Annotation),
			Cause: fmt.Sprintf("its annotation has %s, which %s", humanize.List(parts),
				humanize.OneOr(len(parts), "is not an address", "are not addresses")),
		})
	}
	return out
}

// foreignConflists finds nodes whose runtime prefers another network configuration.
func foreignConflists(f *facts) (out []Finding) {
	for _, n := range f.Nodes {
		if n.OtherFirst != "" {
			out = append(out, Finding{
				Object: Object{"node", n.Name}, Cause: n.OtherFirst, Fix: "kubectl describe node " + n.Name,
			})
		}
	}
	return out
}
