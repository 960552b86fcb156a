package doctor

import (
	"net/netip"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// ControllerNamespace is where the manifests put the controller, ControllerName the name of its pods'
// label and of the Lease that the leader holds.
const (
	ControllerNamespace = "bcsnet-system"
	ControllerName      = "bcsnet-controller"
)

// Part is a part of a snapshot that is read by itself.
type Part string

// Parts of a snapshot.
const (
	PartCRDs       Part = "CRDs"
	PartController Part = "controller"
	PartPools      Part = "pools"
	PartAddresses  Part = "addresses"
	PartClaims     Part = "claims"
	PartPods       Part = "pods"
	PartNodes      Part = "nodes"
	PartServices   Part = "service networks"
	PartPlain      Part = "plain callers"
)

// Parts returns all parts.
func Parts() []Part {
	return []Part{
		PartCRDs, PartController, PartPools, PartAddresses, PartClaims, PartPods, PartNodes, PartServices, PartPlain,
	}
}

// Snapshot is the cluster as the checks see it.
type Snapshot struct {
	// Now is the API server's time.
	Now time.Time
	// Missing has the errors of the parts that could not be read. The checks that need them do not run.
	Missing map[Part]error

	CRDs       []CRD
	Controller Controller
	Pools      []Pool
	// Leases are the addresses that are held, whose object is being deleted, or that were given up within
	// Settling, or for which somebody else answered within lease.ConflictWindow. Others may be left out.
	Leases []lease.Lease
	Claims []*v1.BCSNetIPClaim
	Pods   []workload.Pod
	Nodes  []Node
	// Services are the networks of the cluster's Services.
	Services []netip.Prefix
	// PlainCallers are the machines that call the controller by plain HTTP.
	PlainCallers PlainCallers
}

// Settling spares a lease or a pod that changed less long ago. The status of a pod follows its addresses by seconds,
// and an address follows the end of its pod.
const Settling = time.Minute

// Concerns reports whether a snapshot needs a lease.
func Concerns(l lease.Lease, now time.Time) bool {
	return l.State != lease.Available || l.Deleting || now.Sub(l.Updated) < Settling || l.Conflict.Recent(now)
}

// CRD is one of the CustomResourceDefinitions of this release, as the cluster has it.
type CRD struct {
	Name string
	// Missing: the cluster does not have it. Difference is where it is not that of this release, NotServed why the API
	// server does not serve it, or will not for long.
	Missing               bool
	Difference, NotServed string
}

// Controller is the state of bcsnet-controller in the cluster.
type Controller struct {
	// Pods counts its pods, Ready those that are.
	Pods, Ready int
	// Leader holds the Lease; empty when nobody does. Renewed is when it was last renewed, and Term for how long that
	// counts.
	Leader  string
	Renewed time.Time
	Term    time.Duration
}

// Pool is a pool as the allocator sees it, and as it is stored. The checks find out themselves which nodes its host
// selector matches.
type Pool struct {
	ipam.Pool
	Object *v1.BCSNetPool
}

// Node has what matters of a Node.
type Node = hosts.Node
