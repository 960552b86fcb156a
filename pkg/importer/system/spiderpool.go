package system

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// spiderpool takes over from Spiderpool.
func spiderpool() System {
	return System{
		Name: "spiderpool", Title: "Spiderpool",
		About: `It reads the objects SpiderIPPool and SpiderReservedIP of the group
spiderpool.spidernet.io/v2beta1. A pool keeps its name, subnet, ranges,
gateway, VLAN, routes, nodes and namespaces. Addresses of status.allocatedIPs
stay with their pods. A pod affinity has no equivalent: such a pool serves
only those who name it.`,
		Example: `  bcsnetctl import spiderpool --dry-run=client
  bcsnetctl import spiderpool --yes`,
		Read: readSpiderpool, Withdrawer: spiderWithdrawer(),
	}
}

// spiderPool is a SpiderIPPool.
type spiderPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Subnet            string                `json:"subnet"`
		IPs               []string              `json:"ips"`
		ExcludeIPs        []string              `json:"excludeIPs"`
		Gateway           string                `json:"gateway"`
		VLAN              int32                 `json:"vlan"`
		Disable           bool                  `json:"disable"`
		Default           bool                  `json:"default"`
		Routes            []v1.Route            `json:"routes"`
		PodAffinity       *metav1.LabelSelector `json:"podAffinity"`
		NamespaceAffinity *metav1.LabelSelector `json:"namespaceAffinity"`
		NamespaceName     []string              `json:"namespaceName"`
		NodeAffinity      *metav1.LabelSelector `json:"nodeAffinity"`
		NodeName          []string              `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		// AllocatedIPs is JSON: addresses and who has them.
		AllocatedIPs string `json:"allocatedIPs"`
	} `json:"status"`
}

// spiderAllocation is an entry of allocatedIPs.
type spiderAllocation struct {
	Interface string `json:"interface"`
	Pod       string `json:"pod"`
	PodUID    string `json:"podUid"`
}

type spiderReserved struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IPs []string `json:"ips"`
	} `json:"spec"`
}

func readSpiderpool(ctx context.Context, from Source) (importer.Rows, error) {
	r := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "spiderpool.spidernet.io", Version: "v2beta1"}}
	out := rows{importer.Rows{System: "spiderpool"}}
	forEach(r, "spiderippools", true, out.spiderPool)
	forEach(r, "spiderreservedips", false, func(o *spiderReserved) {
		out.reservation("SpiderReservedIP", o, o.Spec.IPs)
	})
	return out.Rows, r.err
}

// spiderPool adds a pool and its allocations.
func (r *rows) spiderPool(o *spiderPool) {
	name := object("SpiderIPPool", o)
	subnet, ok := r.subnet(name, "subnet", o.Spec.Subnet)
	if !ok {
		return
	}
	p := poolOf(o.Name, subnet)
	p.Spec.AvailableIPs, p.Spec.ExcludeIPs = o.Spec.IPs, o.Spec.ExcludeIPs
	p.Spec.Gateway, p.Spec.VLAN, p.Spec.Routes = o.Spec.Gateway, o.Spec.VLAN, o.Spec.Routes
	p.Spec.Namespaces, p.Spec.NamespaceSelector = o.Spec.NamespaceName, o.Spec.NamespaceAffinity
	switch {
	case len(o.Spec.NodeName) > 0:
		p.Spec.HostSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/hostname", Operator: metav1.LabelSelectorOpIn, Values: o.Spec.NodeName},
		}}
	case o.Spec.NodeAffinity != nil:
		p.Spec.HostSelector = o.Spec.NodeAffinity
	}
	if o.Spec.Disable {
		r.disabled(name)
	}
	if !o.Spec.Default && len(o.Spec.NamespaceName) == 0 && o.Spec.NamespaceAffinity == nil {
		p.Spec.Default = new(false)
	}
	if o.Spec.PodAffinity != nil {
		r.left(name, "its podAffinity has no equivalent: name the pool in the annotations of those pods")
	}
	r.Pools = append(r.Pools, p)
	if o.Status.AllocatedIPs == "" {
		return
	}
	allocated := map[string]spiderAllocation{}
	if err := json.Unmarshal([]byte(o.Status.AllocatedIPs), &allocated); err != nil {
		r.conflict(name, "its allocatedIPs cannot be read: %v", err)
		return
	}
	for _, address := range slices.Sorted(maps.Keys(allocated)) {
		a := allocated[address]
		namespace, pod := split(a.Pod)
		r.add(address, importer.Address{Object: name + ", " + address, State: importer.Held, Holder: lease.Holder{
			IfName: a.Interface, Namespace: namespace, PodName: pod, PodUID: a.PodUID,
		}})
	}
}
