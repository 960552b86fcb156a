package controller

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// GatewayAnnotation on a node names the gateway of its pods, where --gateway-source is host.
const GatewayAnnotation = "netservicecontroller.bkbcs.tencent.com/gateway"

// nodes keeps the addresses and gateway annotations of the nodes.
type nodes struct {
	index *ipam.Index
	// changed is told of the addresses that a node has got or lost.
	changed  func([]netip.Addr)
	mu       sync.RWMutex
	addrs    map[string][]netip.Addr
	gateways map[netip.Addr]netip.Addr
}

func newNodes(index *ipam.Index, changed func([]netip.Addr)) *nodes {
	return &nodes{index: index, changed: changed, addrs: map[string][]netip.Addr{}, gateways: map[netip.Addr]netip.Addr{}}
}

// set takes a node's state.
func (n *nodes) set(o *corev1.Node) {
	var addrs []netip.Addr
	for _, a := range o.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		if ip, err := ipam.ParseAddr(a.Address); err == nil && !slices.Contains(addrs, ip) {
			addrs = append(addrs, ip)
		}
	}
	gateway, _ := ipam.ParseAddr(o.Annotations[GatewayAnnotation])
	n.put(o.Name, addrs, gateway)
}

// remove forgets a node.
func (n *nodes) remove(name string) { n.put(name, nil, netip.Addr{}) }

func (n *nodes) put(name string, addrs []netip.Addr, gateway netip.Addr) {
	n.mu.Lock()
	before := n.addrs[name]
	for _, a := range before {
		delete(n.gateways, a)
	}
	n.addrs[name] = addrs
	if len(addrs) == 0 {
		delete(n.addrs, name)
	}
	for _, a := range addrs {
		if gateway.IsValid() {
			n.gateways[a] = gateway
		}
	}
	n.mu.Unlock()
	n.index.SetNode(name, addrs)
	if !slices.Equal(before, addrs) {
		n.changed(slices.Concat(before, addrs))
	}
}

// of are the addresses of a node.
func (n *nodes) of(name string) []netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.addrs[name]
}

// all are the nodes with their addresses, by name.
func (n *nodes) all() map[string][]netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return maps.Clone(n.addrs)
}

// gateway is what the annotation of a host's node says; invalid when there is none.
func (n *nodes) gateway(host netip.Addr) netip.Addr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.gateways[host]
}

// trimNode is a node with no more than is read here: what the cache keeps.
func trimNode(o *corev1.Node) *corev1.Node {
	t := &corev1.Node{}
	t.Name, t.UID, t.ResourceVersion = o.Name, o.UID, o.ResourceVersion
	if g, ok := o.Annotations[GatewayAnnotation]; ok {
		t.Annotations = map[string]string{GatewayAnnotation: g}
	}
	t.Status.Addresses = o.Status.Addresses
	return t
}
