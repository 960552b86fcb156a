package workload

import (
	"net/netip"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// OwnerKind is the kind of objects that hold addresses themselves, as it stands in the owners of their leases.
type OwnerKind string

const (
	// OwnerClusterAPI are the IPAddressClaims of Cluster API.
	OwnerClusterAPI OwnerKind = "capi"
	// OwnerService are Services of type LoadBalancer.
	OwnerService OwnerKind = "service"
)

// OwnerObject is an object of the API server that holds addresses. Leases name it as owner by KIND/NAMESPACE/NAME.
type OwnerObject struct {
	Kind            OwnerKind
	Namespace, Name string
}

// ParseOwner returns the object that the owner of a lease stands for; ok is false if it stands for none.
func ParseOwner(owner string) (o OwnerObject, ok bool) {
	kind, rest, _ := strings.Cut(owner, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	o = OwnerObject{Kind: OwnerKind(kind), Namespace: namespace, Name: name}
	if !ok || o.What() == "" || namespace == "" || name == "" || strings.Contains(name, "/") {
		return OwnerObject{}, false
	}
	return o, true
}

// String returns the owner that leases name.
func (o OwnerObject) String() string { return string(o.Kind) + "/" + o.Namespace + "/" + o.Name }

// What returns the kind of the object as the API server has it; empty for an unknown one.
func (o OwnerObject) What() string {
	switch o.Kind {
	case OwnerClusterAPI:
		return "IPAddressClaim"
	case OwnerService:
		return "Service"
	default:
		return ""
	}
}

// IfName returns the interface that the lease of an address of the object names. A Service has an address of each
// family by a lease of its own, so that each comes and goes alone.
func (o OwnerObject) IfName(a netip.Addr) string {
	if o.Kind == OwnerService {
		return ipaddr.FamilyOf(a).String()
	}
	return lease.DefaultIfName
}

// Workload is the owner of a pod: the Deployment, StatefulSet or similar object that creates it, or the pod itself if
// there is none.
type Workload struct {
	// Group and Kind, as in "apps" and "Deployment". The version is not part of the identity.
	Group, Kind string
	// Namespace is empty for kinds without one.
	Namespace, Name string
	// UID is empty if only a name is known.
	UID string
}

// String returns kind, namespace and name as in messages.
func (w Workload) String() string {
	if w.Namespace == "" {
		return w.Kind + " " + w.Name
	}
	return w.Kind + " " + w.Namespace + "/" + w.Name
}

// Owner is the controlling owner of an object, as its owner reference names it; zero for none.
type Owner struct {
	Group, Kind, Name, UID string
}
