package node

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

// GatewayAnnotation on a node has the gateway of its pods, if --gateway-source is host.
const GatewayAnnotation = "netservicecontroller.bkbcs.tencent.com/gateway"

// Nodes has the nodes of the cluster: the addresses that they claim, their gateways, and when they went away.
type Nodes struct {
	pools Pools
	// changed is called with the addresses that a node has gained or lost, and with the pools whose host selectors now
	// select other hosts.
	changed func(addrs []netip.Addr, pools []string)
	// now returns the API server's time.
	now      func() time.Time
	mu       sync.RWMutex
	table    *hosts.Table
	gateways map[string]netip.Addr
	// away has the times at which nodes became not ready.
	away map[string]time.Time
	// left has, for addresses that nodes claimed, which of these nodes are still there, and until when they did.
	left map[netip.Addr]map[string]time.Time
}

// Pools takes the nodes of hosts: those of the index do.
type Pools interface {
	// SetNode records a node, and names the pools whose host selectors therefore select other hosts.
	SetNode(name string, n ipam.Node) (reselected []string)
}

// New returns Nodes without nodes. changed is called with the addresses that a node has gained or lost, and with the
// pools whose host selectors therefore select other hosts; now returns the API server's time.
func New(pools Pools, changed func(addrs []netip.Addr, pools []string), now func() time.Time) *Nodes {
	return &Nodes{
		pools: pools, changed: changed, now: now,
		table: hosts.NewTable(), gateways: map[string]netip.Addr{}, away: map[string]time.Time{},
		left: map[netip.Addr]map[string]time.Time{},
	}
}

// Set records a node from the cache.
func (n *Nodes) Set(o *corev1.Node) {
	is := hosts.Of(o)
	gateway, _ := ipaddr.ParseAddr(o.Annotations[GatewayAnnotation])
	n.mu.Lock()
	was := n.table.Set(is)
	n.noteLeft(was, is)
	if n.gateways[is.Name] = gateway; !gateway.IsValid() {
		delete(n.gateways, is.Name)
	}
	n.noteAway(is)
	n.mu.Unlock()
	n.publish(o.Name, was.Addrs, is)
}

// Remove forgets a node.
func (n *Nodes) Remove(o *corev1.Node) {
	n.mu.Lock()
	was := n.table.Remove(o.Name)
	delete(n.gateways, o.Name)
	delete(n.away, o.Name)
	for host := range n.left {
		n.comeBack(host, o.Name)
	}
	n.mu.Unlock()
	n.publish(o.Name, was.Addrs, hosts.Node{})
}

// publish reports a node to the index and the pools.
func (n *Nodes) publish(name string, before []netip.Addr, is hosts.Node) {
	pools, after := n.pools.SetNode(name, indexed(is)), is.Addrs
	if slices.Equal(before, after) {
		before, after = nil, nil
	}
	if all := slices.Concat(before, after); len(all)+len(pools) > 0 {
		n.changed(all, pools)
	}
}

// indexed returns a node in the form of the index.
func indexed(n hosts.Node) ipam.Node {
	return ipam.Node{Addrs: n.Addrs, Internal: n.Internal, Labels: n.Labels}
}

// noteAway records when a node became not ready: at the time in its condition, or when it was first seen so, whichever
// is earlier.
func (n *Nodes) noteAway(is hosts.Node) {
	if is.Ready {
		delete(n.away, is.Name)
		return
	}
	since, known := n.away[is.Name]
	if !known {
		since = n.now()
	}
	if !is.Since.IsZero() && is.Since.Before(since) {
		since = is.Since // it was not ready before this process started
	}
	n.away[is.Name] = since
}

// Claim is a node that claims an address, and the time at which it went away; zero for a ready node.
type Claim struct {
	hosts.Node
	Away time.Time
}

// At returns the nodes that claim the address of a host, ready or not, sorted by name.
func (n *Nodes) At(host netip.Addr) (all []Claim) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, is := range n.table.At(host) {
		all = append(all, Claim{is, n.away[is.Name]})
	}
	return all
}

// Known reports whether any node, ready or not, claims the address of a host.
func (n *Nodes) Known(host netip.Addr) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.table.Claimed(host)
}

// Hosts returns the addresses for which callers on a node may act (hosts.Table.ActsFor).
func (n *Nodes) Hosts(name string) []netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.table.ActsFor(name)
}

// Gateway returns the gateway in the annotation of a host's node; invalid if there is none, or if the nodes that claim
// the host differ in it: what one kubelet reports says nothing for another node's pods.
func (n *Nodes) Gateway(host netip.Addr) (gateway netip.Addr) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for i, is := range n.table.At(host) {
		of := n.gateways[is.Name]
		if i > 0 && of != gateway {
			return netip.Addr{}
		}
		gateway = of
	}
	return gateway
}

// Trim returns a node with only the fields that are read here, for the cache. Of the node's resources it keeps those
// that this controller publishes or has published before.
func Trim(o *corev1.Node, resources scheduling.Resources) *corev1.Node {
	t := &corev1.Node{}
	t.Name, t.UID, t.ResourceVersion, t.Labels = o.Name, o.UID, o.ResourceVersion, o.Labels
	for _, name := range []string{GatewayAnnotation, hosts.Annotation} {
		if v, ok := o.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, name, v)
		}
	}
	t.Status.Addresses = o.Status.Addresses
	if i := slices.IndexFunc(o.Spec.Taints, hosts.IsOutOfService); i >= 0 {
		t.Spec.Taints = o.Spec.Taints[i : i+1 : i+1]
	}
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
