package nodecheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// path is what the pod of one node found when it asked that of another.
type path struct {
	addrs, lost int
	why         string // of the first address that was lost
}

// paths are the ways between pods that were tried, by the names of the nodes: from, to.
type paths struct {
	tried  map[string]map[string]*path
	cutOff map[string]bool
}

func newPaths(nodes []Node) *paths {
	p := &paths{tried: map[string]map[string]*path{}, cutOff: map[string]bool{}}
	nodeOf := map[string]string{}
	for i := range nodes {
		nodeOf[nodes[i].Pod] = nodes[i].Name
	}
	for i := range nodes {
		n := &nodes[i]
		if n.Report == nil {
			continue
		}
		p.tried[n.Name] = map[string]*path{}
		for _, peer := range n.Plan.Peers {
			p.tried[n.Name][nodeOf[peer.Name]] = &path{addrs: len(peer.Addrs)}
		}
		for _, l := range n.Report.Lost {
			peer := n.Plan.Peers[l.Peer]
			way := p.tried[n.Name][nodeOf[peer.Name]]
			if way.lost++; way.why == "" {
				way.why = strings.TrimSuffix(fmt.Sprintf("%s: %s", peer.Addrs[l.Addr], l.Why), ": ")
			}
		}
	}
	for name := range p.tried {
		p.cutOff[name] = p.isCutOff(name)
	}
	return p
}

// isCutOff reports whether a node reaches no address of at least two others, and none of them any of its own.
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

// lost returns the names of the nodes that one does not reach by some address, in order.
func (p *paths) lost(from string) (names []string) {
	for to, way := range p.tried[from] {
		if way.lost > 0 {
			names = append(names, to)
		}
	}
	slices.Sort(names)
	return names
}

// findings returns what a node does not reach. A node that is cut off has one finding of its own, and others have none
// about it; two that do not reach each other have one, at the first.
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
		out = append(out, n.finding(CheckPeers, fix, "its pod does not reach that of %s", humanize.List(one)))
	}
	if len(both) > 0 {
		out = append(out, n.finding(CheckPeers, fix, "its pod does not reach that of %s, and is not reached from there",
			humanize.List(both)))
	}
	return out
}
