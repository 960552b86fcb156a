package nodecheck

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// path is the result of one node's pod asking another node's pod.
type path struct {
	addrs, lost int
	why         string // of the first address that was lost
}

// paths are the tested connections between pods, by the names of the nodes: from, to. Addresses that another machine
// also has are left out in both directions: that machine may receive the traffic, which its own finding explains.
type paths struct {
	tried  map[string]map[string]*path
	cutOff map[string]bool
}

func newPaths(nodes []Node) *paths {
	p := &paths{tried: map[string]map[string]*path{}, cutOff: map[string]bool{}}
	nodeOf, twice := map[string]string{}, map[netip.Addr]bool{}
	for i := range nodes {
		n := &nodes[i]
		nodeOf[n.Pod] = n.Name
		if n.Report == nil {
			continue
		}
		for j, l := range n.Report.Links {
			twice[n.Addrs[j].Addr] = len(l.Others) > 0
		}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Report != nil {
			p.tried[n.Name] = ways(n, nodeOf, twice)
		}
	}
	for name := range p.tried {
		p.cutOff[name] = p.isCutOff(name)
	}
	return p
}

// ways returns a node's results for the others, by their names.
func ways(n *Node, nodeOf map[string]string, twice map[netip.Addr]bool) map[string]*path {
	out := map[string]*path{}
	skip := func(to netip.Addr) bool {
		return twice[to] || slices.ContainsFunc(n.Addrs, func(from Address) bool {
			return twice[from.Addr] && from.Addr.Is4() == to.Is4()
		})
	}
	for _, peer := range n.Plan.Peers {
		way := &path{}
		for _, addr := range peer.Addrs {
			if !skip(addr) {
				way.addrs++
			}
		}
		if way.addrs > 0 {
			out[nodeOf[peer.Name]] = way
		}
	}
	for _, l := range n.Report.Lost {
		peer := n.Plan.Peers[l.Peer]
		way, addr := out[nodeOf[peer.Name]], peer.Addrs[l.Addr]
		if skip(addr) {
			continue
		}
		if way.lost++; way.why == "" {
			way.why = strings.TrimSuffix(fmt.Sprintf("%s: %s", addr, l.Why), ": ")
		}
	}
	return out
}

// isCutOff reports whether a node reaches no address of at least two others, and none of these reaches an address of
// the node.
func (p *paths) isCutOff(name string) bool {
	for _, way := range p.tried[name] {
		if way.lost < way.addrs {
			return false
		}
	}
	for _, from := range p.tried {
		if way := from[name]; way != nil && way.lost < way.addrs {
			return false
		}
	}
	return len(p.tried[name]) >= 2
}

// lost returns, sorted, the names of the nodes that a node cannot reach by some address.
func (p *paths) lost(from string) (names []string) {
	for to, way := range p.tried[from] {
		if way.lost > 0 {
			names = append(names, to)
		}
	}
	slices.Sort(names)
	return names
}

// findings returns the nodes that a node cannot reach. A node that is cut off has one finding of its own, and does not
// appear in those of others. Two nodes that cannot reach each other have one finding, at the first.
func (p *paths) findings(n *Node) []Finding {
	const fix = "see whether the port of the node's switch carries the pool's VLAN, and whether something filters " +
		"between the nodes"
	lost := p.lost(n.Name)
	if p.cutOff[n.Name] {
		return []Finding{n.finding(CheckPeers, fix,
			"its pod is cut off: it reaches none of %s, and none of them reaches it (%s)",
			humanize.Plural(len(lost), "other"), p.tried[n.Name][lost[0]].why)}
	}
	var one, both []string
	for _, to := range lost {
		back := p.tried[to][n.Name]
		mutual := back != nil && back.lost > 0
		switch text := fmt.Sprintf("%s (%s)", to, p.tried[n.Name][to].why); {
		case p.cutOff[to], mutual && to < n.Name:
		case mutual:
			both = append(both, text)
		default:
			one = append(one, text)
		}
	}
	var out []Finding
	if len(one) > 0 {
		out = append(out, n.finding(CheckPeers, fix, "its pod does not reach the pod of %s", humanize.List(one)))
	}
	if len(both) > 0 {
		out = append(out, n.finding(CheckPeers, fix,
			"its pod does not reach the pod of %s, and is not reached from there",
			humanize.List(both)))
	}
	return out
}
