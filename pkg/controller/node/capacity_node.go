package node

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

// capacityManager is the field manager of the published resources. By it, a node's managedFields show which of its
// resources this controller published, even under names that are no longer used.
const capacityManager = "bcsnet-controller-capacity"

// nodeCapacity is a node with its published numbers.
type nodeCapacity struct {
	name    string
	uid     types.UID
	version string
	addrs   []netip.Addr

	// says has the numbers in the node's status; mixed if capacity and allocatable differ. ours are the resources that
	// this controller has published.
	says map[corev1.ResourceName]int64
	ours []corev1.ResourceName

	// pools are the pools from which it draws, and kind is their names in one string. own is the number of pods on it
	// that hold addresses. fresh reports whether all three are up to date. left is the number of pods for which its
	// pools have addresses.
	pools []string
	kind  string
	own   int
	// held is the number of the node's addresses in each of its pools with maxPerHost.
	held  map[string]int
	fresh bool
	left  uint64

	// patched is the time of the last patch. full reports whether its pools were full then, few whether they had few
	// addresses, known whether full and few are known, failed whether the last patch failed.
	patched                  time.Time
	full, few, known, failed bool
}

// mixed represents two different numbers.
const mixed = -1

// see records the numbers in the node's status, unless a newer version is known.
func (n *nodeCapacity) see(o *corev1.Node, r scheduling.Resources) {
	if n.version != "" {
		if order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, n.version); err == nil && order < 0 {
			return
		}
	}
	n.version, n.says, n.ours = o.ResourceVersion, map[corev1.ResourceName]int64{}, publishedBefore(o)
	for _, name := range slices.Concat(r, n.ours) {
		c, inCapacity := o.Status.Capacity[name]
		a, inAllocatable := o.Status.Allocatable[name]
		switch {
		case inCapacity && inAllocatable && c.Cmp(a) == 0:
			n.says[name] = c.Value()
		case inCapacity || inAllocatable:
			n.says[name] = mixed
		}
	}
}

// room returns the number of pods for which the node's pools have addresses. It is the same for all nodes of a kind
// that hold no address of a pool with maxPerHost.
func (n *nodeCapacity) room(spares map[string]ipam.Headroom) uint64 {
	mine := make([]ipam.Headroom, 0, len(n.pools))
	for _, p := range n.pools {
		if s, ok := spares[p]; ok {
			mine = append(mine, s.On(n.held[p]))
		}
	}
	return ipam.Room(mine)
}

// count reads from the index the number of pods on the node that hold addresses, and the number of the node's addresses
// in its pools.
func (n *nodeCapacity) count(x *index.Index) {
	n.own, n.held = x.Leases.PodsOn(n.addrs), x.Pools.HeldOn(n.addrs, n.pools)
}

// served reports whether the node publishes any number: it has pools, or pods with addresses of earlier pools.
func (n *nodeCapacity) served() bool { return len(n.pools) > 0 || n.own > 0 }

// number returns the number to publish.
func (n *nodeCapacity) number() int64 {
	return int64(min(n.left, math.MaxInt64-uint64(n.own))) + int64(n.own)
}

// superfluous reports whether a resource that this controller has published must be removed from the node.
func (n *nodeCapacity) superfluous(name corev1.ResourceName, r scheduling.Resources) bool {
	return !n.served() || !slices.Contains(r, name)
}

// differs reports whether the published numbers must change.
func (n *nodeCapacity) differs(r scheduling.Resources) bool {
	if n.served() {
		number := n.number()
		for _, name := range r {
			if says, ok := n.says[name]; !ok || says != number {
				return true
			}
		}
	}
	return slices.ContainsFunc(n.ours, func(name corev1.ResourceName) bool {
		_, says := n.says[name]
		return says && n.superfluous(name, r)
	})
}

// agree records that the published numbers are right.
func (n *nodeCapacity) agree() { n.full, n.few, n.known = n.left == 0, n.left < fewLeft, true }

// edge reports whether the node must be patched soon: its pools have become full, or have addresses again, since the
// last patch; that is not known; or a starting kubelet has set the numbers to 0.
func (n *nodeCapacity) edge() bool {
	return !n.known || n.full != (n.left == 0) || n.left > 0 && n.reset()
}

// reset reports whether a published resource is missing or 0 on the node.
func (n *nodeCapacity) reset() bool {
	for _, v := range n.says {
		if v == 0 {
			return true
		}
	}
	return false
}

// notBefore returns the earliest time of the next patch.
func (n *nodeCapacity) notBefore() time.Time {
	switch {
	case n.patched.IsZero():
		return time.Time{}
	case n.edge():
		return n.patched.Add(capacityEdge)
	case n.few || n.left < fewLeft || n.failed:
		return n.patched.Add(capacityFew)
	}
	return n.patched.Add(capacityEvery)
}

// urgency orders the nodes that wait for a patch.
func urgency(a, b *nodeCapacity) int {
	if a.edge() != b.edge() {
		if a.edge() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.patched.Compare(b.patched), cmp.Compare(a.name, b.name))
}

// nodePatch is the data to publish on a node.
type nodePatch struct {
	node            *nodeCapacity
	edge, full, few bool
	numbers         map[corev1.ResourceName]*resource.Quantity // nil for removed ones
}

func (n *nodeCapacity) patch(r scheduling.Resources, now time.Time) nodePatch {
	p := nodePatch{
		node: n, edge: n.edge(), full: n.left == 0, few: n.left < fewLeft,
		numbers: map[corev1.ResourceName]*resource.Quantity{},
	}
	for _, name := range n.ours {
		if n.superfluous(name, r) {
			p.numbers[name] = nil
		}
	}
	if n.served() {
		for _, name := range r {
			p.numbers[name] = resource.NewQuantity(n.number(), resource.DecimalSI)
		}
	}
	n.patched = now
	return p
}

// body returns the patch. It contains no version and no other fields of the node, so it does not conflict with a
// kubelet that writes its status at the same time. A kubelet does not change resources that it does not know.
func (p nodePatch) body() client.Patch {
	// cannot fail
	body, _ := json.Marshal(map[string]any{"status": map[string]any{"capacity": p.numbers, "allocatable": p.numbers}})
	return client.RawPatch(types.MergePatchType, body)
}

// publishes reports whether an entry of managedFields belongs to capacityManager.
func publishes(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == capacityManager && e.Subresource == "status" && e.FieldsV1 != nil
}

// publishedBefore returns the resources of a node that this controller has published, by the node's managedFields.
func publishedBefore(o *corev1.Node) []corev1.ResourceName {
	at := slices.IndexFunc(o.ManagedFields, publishes)
	if at < 0 {
		return nil
	}
	var fields struct {
		Status struct {
			Capacity    map[string]json.RawMessage `json:"f:capacity"`
			Allocatable map[string]json.RawMessage `json:"f:allocatable"`
		} `json:"f:status"`
	}
	if json.Unmarshal(o.ManagedFields[at].FieldsV1.GetRawBytes(), &fields) != nil {
		return nil // of another version of the format
	}
	names := map[corev1.ResourceName]struct{}{}
	for _, list := range []map[string]json.RawMessage{fields.Status.Capacity, fields.Status.Allocatable} {
		for key := range list {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				names[corev1.ResourceName(name)] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// copyResource copies one resource of a list, if it exists.
func copyResource(into *corev1.ResourceList, from corev1.ResourceList, name corev1.ResourceName) {
	q, ok := from[name]
	if !ok {
		return
	}
	if *into == nil {
		*into = corev1.ResourceList{}
	}
	(*into)[name] = q
}
