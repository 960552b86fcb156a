package pool

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// networkNode is a network with its pools. Its name is empty for the pools without a network.
type networkNode struct {
	name  string
	pools []poolNode
}

// poolNode is a pool with the hosts that hold its addresses. idle counts the other hosts.
type poolNode struct {
	pool             resource.Pool
	active, reserved int
	hosts            []hostNode
	idle             int
	// blocks has the blocks of a split pool.
	blocks []poolNode
	// selector is the host selector; may be empty. selected is the number of nodes that match it, -1 if nodes are
	// unknown.
	selector string
	selected int
}

// hostNode is a host with its addresses. host is invalid for addresses that no host has.
type hostNode struct {
	host   netip.Addr
	listed bool
	held   []lease.Lease
}

// growTree sorts pools and their taken addresses into a tree: networks by name, the pools without a network last, hosts
// and addresses numerically. nodes are those that may draw without being listed.
func growTree(
	all []resource.Pool, blocks map[string][]resource.Pool, taken []lease.Lease, nodes []resource.Node,
) []networkNode {
	byPool := map[string][]lease.Lease{}
	for _, l := range taken {
		byPool[l.Pool] = append(byPool[l.Pool], l)
	}
	byNetwork := map[string][]poolNode{}
	for _, p := range all {
		of := resource.NetworkOf(p)
		byNetwork[of] = append(byNetwork[of], growWithBlocks(p, blocks[p.Name], byPool, nodes))
	}
	names := slices.SortedFunc(maps.Keys(byNetwork), func(a, b string) int {
		if (a == "") != (b == "") {
			return len(b) - len(a)
		}
		return cmp.Compare(a, b)
	})
	return app.Map(names, func(name string) networkNode { return networkNode{name, byNetwork[name]} })
}

// growWithBlocks returns the node of a pool with its blocks, whose addresses count as the pool's.
func growWithBlocks(
	p resource.Pool, blocks []resource.Pool, byPool map[string][]lease.Lease, nodes []resource.Node,
) poolNode {
	n := growPool(p, byPool[p.Name], nodes)
	if p.Spec.BlockSize == 0 {
		return n
	}
	n.idle = 0 // its hosts draw from the blocks
	for _, b := range blocks {
		grown := growPool(b, byPool[b.Name], nil)
		of := resource.HostsOf(p, nodes)
		for i, h := range grown.hosts {
			grown.hosts[i].listed = of.Draws(h.host)
		}
		n.active, n.reserved, n.blocks = n.active+grown.active, n.reserved+grown.reserved, append(n.blocks, grown)
	}
	return n
}

func growPool(p resource.Pool, taken []lease.Lease, nodes []resource.Node) poolNode {
	n := poolNode{pool: p, selector: resource.SelectorCell(p), selected: -1}
	if len(nodes) > 0 {
		n.selected = len(resource.Selected(p, nodes))
	}
	byHost := map[netip.Addr][]lease.Lease{}
	for _, l := range taken {
		for side := range l.Attachments() { // during a live migration both hosts have the address
			byHost[side.Host] = append(byHost[side.Host], side)
		}
		if l.State == lease.Active {
			n.active++
		} else {
			n.reserved++
		}
	}
	of, listed := resource.HostsOf(p, nodes), map[netip.Addr]bool{}
	for _, h := range append(resource.ListedHosts(p), resource.Covered(p, nodes)...) {
		listed[h] = true
	}
	for h := range listed {
		if len(byHost[h]) == 0 {
			n.idle++
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(byHost), netip.Addr.Compare) {
		held := byHost[h]
		slices.SortFunc(held, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
		n.hosts = append(n.hosts, hostNode{h, listed[h] || of.Draws(h), held})
	}
	return n
}

func (n networkNode) branch() printer.Branch {
	b := printer.Branch{Name: n.name}
	active, reserved := 0, 0
	for _, p := range n.pools {
		active, reserved = active+p.active, reserved+p.reserved
		b.Under = append(b.Under, p.branch())
	}
	b.About = humanize.Plural(len(n.pools), "pool") + resource.TakenText(active, reserved)
	if n.name == "" {
		b.Name = "(no network)"
	}
	return b
}

func (n poolNode) branch() printer.Branch {
	b := printer.Branch{
		Name: n.pool.Name, About: resource.CidrOf(n.pool.BCSNetPool) + resource.TakenText(n.active, n.reserved),
	}
	if resource.Counted(n.pool.BCSNetPool) {
		b.About += ", " + app.Count(n.pool.Status.Available) + " free"
	}
	if n.selector != "" {
		b.About += ", for nodes with " + n.selector
		if n.selected >= 0 {
			b.About += fmt.Sprintf(" (%d)", n.selected)
		}
	}
	if size := n.pool.Spec.BlockSize; size > 0 {
		b.About += fmt.Sprintf(", %s of /%d", humanize.Plural(len(n.blocks), "block"), size)
	}
	if resource.IsGroup(n.pool) {
		b.About += ", a group of pool " + n.pool.Spec.Parent
	}
	if resource.IsBlock(n.pool) {
		b.About = strings.Join(n.pool.Spec.Namespaces, ", ") + ": " + n.pool.Spec.AvailableIPs[0] +
			resource.TakenText(n.active, n.reserved)
	}
	for _, block := range n.blocks {
		b.Under = append(b.Under, block.branch())
	}
	for _, h := range n.hosts {
		b.Under = append(b.Under, h.branch())
	}
	if n.idle > 0 {
		b.Under = append(b.Under, printer.Branch{Name: humanize.Plural(n.idle, "host") + humanize.OneOr(n.idle,
			" that holds nothing", " that hold nothing")})
	}
	return b
}

func (n hostNode) branch() printer.Branch {
	b := printer.Branch{Name: resource.AddrText(n.host), About: humanize.Plural(len(n.held), "address")}
	switch {
	case !n.host.IsValid():
		b.Name = "(no host)"
	case !n.listed:
		b.About += ", the host is not in the pool"
	}
	for _, l := range n.held {
		who := "reserved"
		if l.State == lease.Active {
			who = terminal.Visible(l.Who())
		}
		if also := resource.MigrationText(l); also != "" {
			who += ", " + also
		}
		b.Under = append(b.Under, printer.Branch{Name: l.Addr.String(), About: who})
	}
	return b
}

// treeObjects returns the tree for -o json and similar formats.
func treeObjects(networks []networkNode, depth int) *unstructured.Unstructured {
	list := []any{}
	for _, n := range networks {
		o := map[string]any{"network": n.name}
		if depth > 1 {
			pools := app.Map(n.pools, func(p poolNode) any { return p.object(depth) })
			o["pools"] = pools
		}
		list = append(list, o)
	}
	return printer.NewView("PoolTree", map[string]any{"networks": list})
}

func (n poolNode) object(depth int) map[string]any {
	o := map[string]any{
		"name": n.pool.Name, "cidr": resource.CidrOf(n.pool.BCSNetPool),
		"active": int64(n.active), "reserved": int64(n.reserved), "idleHosts": int64(n.idle),
	}
	if resource.Counted(n.pool.BCSNetPool) {
		o["available"] = n.pool.Status.Available
	}
	if n.selector != "" {
		o["hostSelector"] = n.selector
		if n.selected >= 0 {
			o["selectedNodes"] = int64(n.selected)
		}
	}
	if resource.IsGroup(n.pool) {
		o["parent"] = n.pool.Spec.Parent
	}
	if resource.IsBlock(n.pool) {
		o["namespace"], o["cidr"] = strings.Join(n.pool.Spec.Namespaces, ", "), n.pool.Spec.AvailableIPs[0]
	}
	if len(n.blocks) > 0 {
		blocks := app.Map(n.blocks, func(b poolNode) any { return b.object(depth) })
		o["blocks"] = blocks
	}
	if depth < 3 {
		return o
	}
	hosts := []any{}
	for _, h := range n.hosts {
		host := map[string]any{"host": resource.AddrText(h.host), "inPool": h.listed, "held": int64(len(h.held))}
		if depth >= treeLevels {
			addresses := app.Map(h.held, func(l lease.Lease) any { return resource.LeaseObject(l) })
			host["addresses"] = addresses
		}
		hosts = append(hosts, host)
	}
	o["hosts"] = hosts
	return o
}
