package nodecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// Judge returns the findings about nodes, in the order of the nodes.
func Judge(nodes []Node) (out []Finding) {
	paths := newPaths(nodes)
	for i := range nodes {
		n := &nodes[i]
		if n.Failure != nil {
			out = append(out, *n.Failure)
		}
		if n.Report != nil {
			out = append(out, paths.findings(n)...)
			out = append(out, gateways(n)...)
			out = append(out, duplicates(n)...)
		}
		out = append(out, releases(n)...)
	}
	return out
}

func (n *Node) finding(check, fix, format string, args ...any) Finding {
	return Finding{Check: check, Node: n.Name, Cause: fmt.Sprintf(format, args...), Fix: fix}
}

// gateways returns a finding for each gateway that does not answer.
func gateways(n *Node) (out []Finding) {
	for i, l := range n.Report.Links {
		if a := n.Addrs[i]; a.Gateway.IsValid() && !l.Gateway {
			out = append(out, n.finding(CheckGateway,
				"see that the gateway of pool "+a.Pool+" is right (bcsnetctl pool describe "+a.Pool+"), and that the "+
					"port of the switch carries the pool's VLAN to it",
				"the gateway %s of pool %s does not answer on the link of %s: %s", a.Gateway, a.Pool, a.Addr,
				cmp.Or(l.GatewayWhy, "no answer")))
		}
	}
	return out
}

// duplicates returns a finding for each address for which another machine answers.
func duplicates(n *Node) (out []Finding) {
	for i, l := range n.Report.Links {
		if addr := n.Addrs[i].Addr; len(l.Others) > 0 {
			out = append(out, n.finding(CheckDuplicate,
				fmt.Sprintf("find who has it by the MAC, and set the address aside meanwhile: bcsnetctl ip reserve %s",
					addr),
				"somebody else answers for %s of pool %s: %s", addr, n.Addrs[i].Pool, strings.Join(l.Others, ", ")))
		}
	}
	return out
}

// releases returns a finding if the pod or its addresses were not released.
func releases(n *Node) []Finding {
	r := n.Release
	within := r.Within.Round(time.Second)
	switch {
	case !r.Asked:
		return nil
	case r.Left:
		return []Finding{n.finding(CheckRelease, "see whether the kubelet of the node runs: the pod ends once it does",
			"the pod %s was deleted and is still there after %s", n.Pod, within)}
	case len(r.Held) > 0:
		texts := make([]string, 0, len(r.Held))
		for _, a := range r.Held {
			texts = append(texts, a.String())
		}
		return []Finding{n.finding(CheckRelease,
			"see calls.log of the plugin on the node for the DEL; to free it: bcsnetctl doctor --only leaks --fix",
			"%s still in use for the pod %s %s after its end", humanize.List(texts)+humanize.OneOr(len(texts), " is",
				" are"),
			n.Pod, within)}
	}
	return nil
}

// Unasked returns the reason why duplicates could not be tested on some node; empty if they could be tested on all.
func Unasked(nodes []Node) string {
	for i := range nodes {
		if nodes[i].Report == nil {
			continue
		}
		for _, l := range nodes[i].Report.Links {
			if l.Unasked != "" {
				return l.Unasked
			}
		}
	}
	return ""
}

// Reached returns the number of a node's peers that it reached by all their addresses, and the number that it had to
// ask.
func (n *Node) Reached() (reached, asked int) {
	if n.Report == nil {
		return 0, len(n.Plan.Peers)
	}
	var lost []int
	for _, l := range n.Report.Lost {
		lost = append(lost, l.Peer)
	}
	slices.Sort(lost)
	return len(n.Plan.Peers) - len(slices.Compact(lost)), len(n.Plan.Peers)
}
