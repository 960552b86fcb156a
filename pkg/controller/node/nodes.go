package node

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

// GatewayAnnotation on a node gives the gateway of its pods, where --gateway-source is host.
const GatewayAnnotation = "netservicecontroller.bkbcs.tencent.com/gateway"

// Nodes keeps the addresses and gateway annotations of the nodes, and which hosts are away.
type Nodes struct {
	index *ipam.Index
	// changed is called with the addresses that a node has got or lost, and with the pools whose host selectors choose
	// other hosts by it.
	changed func(addrs []netip.Addr, pools []string)
	// now is the API server's time.
	now      func() time.Time
	mu       sync.RWMutex
	addrs    map[string][]netip.Addr
	further  map[string][]netip.Addr // those of the annotation, each once
	given    map[netip.Addr]int      // to how many nodes annotations give an address
	has      map[netip.Addr]int      // how many nodes have an address
	gateways map[netip.Addr]netip.Addr
	// ready has the ready node of an address; away has since when there is none.
	ready map[netip.Addr]string
	away  map[netip.Addr]time.Time
}

// New returns Nodes that know no node. changed is called with the addresses that a node has got or lost, and with the
// pools whose host selectors choose other hosts by it; now is the API server's time.
func New(index *ipam.Index, changed func(addrs []netip.Addr, pools []string), now func() time.Time) *Nodes {
	return &Nodes{
		index: index, changed: changed, now: now,
		addrs: map[string][]netip.Addr{}, further: map[string][]netip.Addr{}, given: map[netip.Addr]int{},
		has: map[netip.Addr]int{}, gateways: map[netip.Addr]netip.Addr{},
		ready: map[netip.Addr]string{}, away: map[netip.Addr]time.Time{},
	}
}

// Set records a node as the cache has it.
func (n *Nodes) Set(o *corev1.Node) {
	gateway, _ := ipaddr.ParseAddr(o.Annotations[GatewayAnnotation])
	ready, since := readiness(o)
	n.give(o.Name, access.FurtherHosts(o.Annotations[access.HostsAnnotation]))
	n.put(o.Name, nodeOf(o), gateway, ready, since)
}

// nodeOf reads the addresses by which a node may ask for its pods, and its labels.
func nodeOf(o *corev1.Node) (n ipam.Node) {
	for _, a := range o.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		ip, err := ipaddr.ParseAddr(a.Address)
		if err != nil {
			continue
		}
		if !slices.Contains(n.Addrs, ip) {
			n.Addrs = append(n.Addrs, ip)
		}
		if a.Type == corev1.NodeInternalIP && !slices.Contains(n.Internal, ip) {
			n.Internal = append(n.Internal, ip)
		}
	}
	n.Labels = o.Labels
	return n
}

// readiness reports whether a node is ready, and since when it is as it is.
func readiness(o *corev1.Node) (ready bool, since time.Time) {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}

// Remove forgets a node.
func (n *Nodes) Remove(o *corev1.Node) {
	n.give(o.Name, nil)
	n.put(o.Name, ipam.Node{}, netip.Addr{}, false, time.Time{})
}

// give records the further addresses of a node.
func (n *Nodes) give(name string, further []netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.further[name] {
		if n.given[a]--; n.given[a] == 0 {
			delete(n.given, a)
		}
	}
	delete(n.further, name)
	if len(further) > 0 {
		n.further[name] = further
	}
	for _, a := range further {
		n.given[a]++
	}
}

func (n *Nodes) put(name string, o ipam.Node, gateway netip.Addr, ready bool, since time.Time) {
	addrs := o.Addrs
	n.mu.Lock()
	n.noteReady(name, addrs, ready, since)
	before := n.addrs[name]
	for _, a := range before {
		delete(n.gateways, a)
		if n.has[a]--; n.has[a] == 0 {
			delete(n.has, a)
		}
	}
	n.addrs[name] = addrs
	if len(addrs) == 0 {
		delete(n.addrs, name)
	}
	for _, a := range addrs {
		n.has[a]++
		if gateway.IsValid() {
			n.gateways[a] = gateway
		}
	}
	n.mu.Unlock()
	pools := n.index.SetNode(name, o)
	if slices.Equal(before, addrs) {
		before, addrs = nil, nil
	}
	if all := slices.Concat(before, addrs); len(all)+len(pools) > 0 {
		n.changed(all, pools)
	}
}

// noteReady records which addresses are a ready node's.
func (n *Nodes) noteReady(name string, addrs []netip.Addr, ready bool, since time.Time) {
	before := n.addrs[name]
	for _, a := range before {
		if n.ready[a] == name {
			delete(n.ready, a)
		}
	}
	if ready {
		for _, a := range addrs {
			n.ready[a] = name
			delete(n.away, a)
		}
	}
	for _, a := range slices.Concat(before, addrs) {
		if _, ok := n.ready[a]; ok {
			continue
		}
		if len(addrs) == 0 && len(n.index.ByHost(a)) == 0 {
			delete(n.away, a) // it has gone and left nothing
			continue
		}
		if _, known := n.away[a]; !known {
			n.away[a] = n.now()
		}
		if !since.IsZero() && since.Before(n.away[a]) && slices.Contains(addrs, a) {
			n.away[a] = since // it was not ready before this process looked
		}
	}
}

// AwaySince returns since when no ready node has the address of a host; away is false while one has. For a host that is
// new to this process, it is the time of the first call.
func (n *Nodes) AwaySince(host netip.Addr) (since time.Time, away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ready := n.ready[host]; ready {
		return time.Time{}, false
	}
	if _, known := n.away[host]; !known {
		n.away[host] = n.now()
	}
	return n.away[host], true
}

// Known reports whether any node, ready or not, has the address of a host.
func (n *Nodes) Known(host netip.Addr) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.has[host] > 0
}

// ReadyNode returns the ready node that has the address of a host.
func (n *Nodes) ReadyNode(host netip.Addr) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok = n.ready[host]
	return name, ok
}

// Of returns the addresses of a node.
func (n *Nodes) Of(name string) []netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.addrs[name]
}

// Hosts returns the addresses that a node asks for: its own, and those that an operator has added. One that is another
// node's own, or that another node was given, too, is not among the added ones: where no policy refuses it, a kubelet
// may annotate its own Node. Which of the two was meant cannot be seen, so it is neither's.
func (n *Nodes) Hosts(name string) []netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := slices.Clone(n.addrs[name])
	for _, a := range n.further[name] {
		if n.has[a] == 0 && n.given[a] == 1 {
			all = append(all, a)
		}
	}
	return all
}

// IsHost reports whether any node asks for a host, by its own addresses or by those that an operator has added.
func (n *Nodes) IsHost(host netip.Addr) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.has[host] > 0 || n.given[host] > 0
}

// Gateway returns the gateway in the annotation of a host's node; invalid when there is none.
func (n *Nodes) Gateway(host netip.Addr) netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.gateways[host]
}

// Trim returns a node with no more than is read here: what the cache keeps. Of the node's resources these are those
// that are published, and those that this controller has published before.
func Trim(o *corev1.Node, resources scheduling.Resources) *corev1.Node {
	t := &corev1.Node{}
	t.Name, t.UID, t.ResourceVersion, t.Labels = o.Name, o.UID, o.ResourceVersion, o.Labels
	for _, name := range []string{GatewayAnnotation, access.HostsAnnotation} {
		if v, ok := o.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, name, v)
		}
	}
	t.Status.Addresses = o.Status.Addresses
	if at := slices.IndexFunc(o.ManagedFields, publishes); at >= 0 {
		t.ManagedFields = o.ManagedFields[at : at+1 : at+1]
	}
	for _, name := range slices.Concat(resources, publishedBefore(t)) {
		copyResource(&t.Status.Capacity, o.Status.Capacity, name)
		copyResource(&t.Status.Allocatable, o.Status.Allocatable, name)
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			t.Status.Conditions = []corev1.NodeCondition{{
				Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return t
}
