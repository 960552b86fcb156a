package doctor

import (
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// ControllerNamespace is the controller's namespace in the manifests. ControllerName is the name in its pods' label and
// of the leader's Lease.
const (
	ControllerNamespace = "bcsnet-system"
	ControllerName      = "bcsnet-controller"
)

// Part is a part of a snapshot that is read separately.
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
	PartOwners     Part = "owners"
)

// Parts returns all parts.
func Parts() []Part {
	return []Part{
		PartCRDs, PartController, PartPools, PartAddresses, PartClaims, PartPods, PartNodes, PartServices, PartPlain,
		PartOwners,
	}
}

// Shown is an address in the status of a Service of a namespace.
type Shown struct {
	Namespace string
	Addr      netip.Addr
}

// Snapshot is the state of the cluster for the checks.
type Snapshot struct {
	// Now is the API server's time.
	Now time.Time
	// Missing has the errors of the parts that could not be read. Checks that need these parts do not run.
	Missing map[Part]error

	CRDs       []CRD
	Controller Controller
	Pools      []Pool
	// Leases are the addresses that are held, whose object is being deleted, that were released within Settling, or for
	// which another machine answered within lease.ConflictWindow. Others may be left out.
	Leases []lease.Lease
	Claims []*v1.BCSNetIPClaim
	Pods   []workload.Pod
	Nodes  []Node
	// Owners are the owners that leases of existing objects name: IPAddressClaims of Cluster API, and Services.
	Owners []string
	// Shown has the addresses that Services show: the lease of a shared one names one of these Services.
	Shown sets.Set[Shown]
	// Services are the networks of the cluster's Services.
	Services []netip.Prefix
	// PlainCallers are the machines that call the controller by plain HTTP.
	PlainCallers PlainCallers
}

// Settling is the age below which a change of a lease or pod is not judged. The status of a pod follows its addresses
// by seconds, and an address follows the end of its pod.
const Settling = time.Minute

// Concerns reports whether a snapshot needs a lease.
func Concerns(l lease.Lease, now time.Time) bool {
	return l.State != lease.Available || l.Deleting || now.Sub(l.Updated) < Settling || l.Conflict.Recent(now)
}

// CRD is one of this release's CustomResourceDefinitions as stored in the cluster.
type CRD struct {
	Name string
	// Missing reports whether the cluster does not have it. Difference is the path at which it differs from this
	// release; NotServed is the reason why the API server does not serve it, or soon will not.
	Missing               bool
	Difference, NotServed string
}

// Controller is the state of bcsnet-controller in the cluster.
type Controller struct {
	// Pods is the number of its pods, Ready the number of ready ones.
	Pods, Ready int
	// Leader holds the Lease; empty if nobody does. Renewed is the time of its last renewal, and Term its duration.
	Leader  string
	Renewed time.Time
	Term    time.Duration
}

// Pool is a pool in the allocator's form, and as stored. The checks themselves match its host selector with nodes.
type Pool struct {
	ipam.Pool
	Object *v1.BCSNetPool
}

// Node has the relevant data of a Node.
type Node = hosts.Node

// wholePools returns a snapshot without the blocks of split pools: all their checked fields come from their parents,
// and their leases count as the parents'. A pool that only looks like a block stays. blocks has the sorted block names
// of each parent.
func (s *Snapshot) wholePools() (whole *Snapshot, blocks map[string][]string) {
	split := map[string]bool{}
	for i := range s.Pools {
		split[s.Pools[i].Name] = s.Pools[i].BlockSize > 0
	}
	parents := map[string]string{}
	blocks = map[string][]string{}
	for i := range s.Pools {
		p := s.Pools[i].Pool
		if split[p.Parent] && block.IsName(p.Name, p.Parent, p.Plan.CIDR) && len(p.Namespaces) == 1 {
			parents[p.Name] = p.Parent
			blocks[p.Parent] = append(blocks[p.Parent], p.Name)
		}
	}
	if len(parents) == 0 {
		return s, nil
	}
	for _, names := range blocks {
		slices.Sort(names)
	}
	copied := *s
	whole = &copied
	whole.Pools = slices.DeleteFunc(slices.Clone(s.Pools), func(p Pool) bool { return parents[p.Name] != "" })
	whole.Leases = make([]lease.Lease, 0, len(s.Leases))
	for _, l := range s.Leases {
		if parent := parents[l.Pool]; parent != "" {
			l.Pool = parent
		}
		whole.Leases = append(whole.Leases, l)
	}
	return whole, blocks
}
