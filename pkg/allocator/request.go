package allocator

import (
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// MaxRequestTime bounds a request from its arrival to its last write. A pool that is deleted waits
// this long for requests that do not know of it yet.
const MaxRequestTime = 15 * time.Second

// Request asks for the addresses of one interface of a container, or of an owner that is not a pod.
type Request struct {
	// Host that asks; invalid for an operator who names Owner and Pool.
	Host netip.Addr
	// ContainerID of the sandbox; may be empty when Owner is set.
	ContainerID string
	// IfName of the interface; empty stands for eth0.
	IfName             string
	Namespace, PodName string
	// PodUID of the pod, when the caller knows it.
	PodUID string
	// Owner in place of the pod.
	Owner string
	// ForObject: the owner stands for an object of Namespace. It is on no host, so that the hosts of a pool do not
	// matter; the namespaces, blocks and quotas do.
	ForObject bool
	// Network restricts the request to the pools of one network.
	Network string
	// Pool restricts the request to one pool, and with it to one family.
	Pool string
	// Pools restrict the request of an owner without a Pool to some pools, which are tried in this order.
	Pools []string
	// Addrs are the addresses asked for, at most one per family.
	Addrs []netip.Addr
	// Families says of which families addresses are taken. What the request does not say of it, the pod may.
	Families ipam.Families
	// CNINetwork is the network configuration that the container is attached by; empty where the caller names none.
	CNINetwork string
	// HostGateway replaces the gateway of the pool if hosts may do that; invalid for none.
	HostGateway netip.Addr
	// StartedAt is when the caller began, by its own clock; zero when it did not send it. A time more than two seconds
	// after the arrival, or five minutes before it, is that of a wrong clock, and counts as two seconds after it, or as
	// the arrival.
	StartedAt time.Time
	// ArrivedAt is when the first replica got the request; zero stands for the present.
	ArrivedAt time.Time
	// OnHosts are the hosts whose pods may get addresses; nil for all. An owner is on no host.
	OnHosts []netip.Addr
}

// key names the attachment that a request is about, by what every caller knows.
func (r Request) key() string {
	if r.Owner != "" {
		return "owner/" + r.Owner + "/" + r.IfName
	}
	return "pod/" + r.Namespace + "/" + r.PodName + "/" + r.IfName
}

// who names the requester in messages.
func (r Request) who() string {
	if r.Owner != "" {
		return "owner " + r.Owner
	}
	return "pod " + r.Namespace + "/" + r.PodName
}

// within reports whether a host is one of those that a caller acts for; nil stands for all.
func within(hosts []netip.Addr, host netip.Addr) bool {
	return hosts == nil || slices.Contains(hosts, host)
}

// ownerOfHost refuses a request for an owner from a caller that acts only for hosts: an owner is on no host.
func ownerOfHost(owner string, onHosts []netip.Addr) error {
	if owner == "" || onHosts == nil {
		return nil
	}
	return ipam.Refuse(ipam.ReasonNotPermitted, "a host may ask only for its pods, and owner %s is not a pod", owner).
		WithHint("ask with a token that names no node")
}

// ReleaseRequest gives up what a container holds.
type ReleaseRequest struct {
	// Host is the host of the caller; invalid if the caller is on no host. StartedAt is a time of that host's clock.
	Host        netip.Addr
	ContainerID string
	// IfName of the interface; empty means all of the container.
	IfName string
	// PodUID also releases what the pod holds without a container ID.
	PodUID string
	// Owner in place of the container.
	Owner string
	// Network restricts the release to the pools of one network.
	Network string
	// StartedAt is when the caller began, as in a Request.
	StartedAt time.Time
	// ArrivedAt is when the first replica got the request; zero stands for the present. An ADD that began later is not
	// overtaken.
	ArrivedAt time.Time
	// OnHosts are the hosts whose leases may be released; nil for all. Namespace is the one whose leases are; empty for
	// all.
	OnHosts   []netip.Addr
	Namespace string
}

// Address is one address of an answer.
type Address struct {
	lease.Lease
	// Settings were given to the holder's container. If they are not known, these are the present ones of the pool.
	Settings lease.Settings
	// Repeated: it was held before the request came.
	Repeated bool
	// Migration: another pod of the virtual machine has it, too.
	Migration bool
}
