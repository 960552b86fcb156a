package system

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
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
		About: `Read are its objects SpiderIPPool and SpiderReservedIP of the group
spiderpool.spidernet.io/v2beta1. A pool keeps its name, subnet, ranges,
gateway, VLAN, routes, nodes and namespaces. Addresses of status.allocatedIPs
stay with their pods. A pod affinity has no equivalent: such a pool serves
only those who name it.`,
		Example: `  bcsnetctl import spiderpool --dry-run=client
  bcsnetctl import spiderpool --yes`,
		Read: readSpiderpool,
	}
}

// spiderPool is a SpiderIPPool.
type spiderPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Subnet     string   `json:"subnet"`
		IPs        []string `json:"ips"`
		ExcludeIPs []string `json:"excludeIPs"`
		Gateway    string   `json:"gateway"`
		VLAN       int32    `json:"vlan"`
		Disable    bool     `json:"disable"`
		Default    bool     `json:"default"`
		Routes     []struct {
			Dst string `json:"dst"`
			GW  string `json:"gw"`
		} `json:"routes"`
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
	kind := schema.GroupVersionResource{
		Group: "spiderpool.spidernet.io", Version: "v2beta1", Resource: "spiderippools",
	}
	pools, err := read[spiderPool](ctx, from, kind, true)
	if err != nil {
		return importer.Rows{}, err
	}
	kind.Resource = "spiderreservedips"
	reserved, err := read[spiderReserved](ctx, from, kind, false)
	return spiderRows(pools, reserved), err
}

func spiderRows(pools []spiderPool, reserved []spiderReserved) importer.Rows {
	r := rows{importer.Rows{System: "spiderpool"}}
	for i := range pools {
		r.spiderPool(&pools[i])
	}
	for i := range reserved {
		o := &reserved[i]
		for _, text := range o.Spec.IPs {
			r.reserve(object("SpiderReservedIP", o), text, "SpiderReservedIP "+o.Name)
		}
	}
	return r.Rows
}

// spiderPool adds a pool and its allocations.
func (r *rows) spiderPool(o *spiderPool) {
	name := object("SpiderIPPool", o)
	subnet, err := netip.ParsePrefix(o.Spec.Subnet)
	if err != nil {
		r.conflict(name, "subnet %q: %v", o.Spec.Subnet, err)
		return
	}
	p := importer.Pool(o.Name)
	p.Spec = v1.BCSNetPoolSpec{
		Net: subnet.Masked().Addr().String(), Mask: int32(subnet.Bits()), Gateway: o.Spec.Gateway, VLAN: o.Spec.VLAN,
		AvailableIPs: o.Spec.IPs, ExcludeIPs: o.Spec.ExcludeIPs, HostSelector: o.Spec.NodeAffinity,
		Namespaces: o.Spec.NamespaceName, NamespaceSelector: o.Spec.NamespaceAffinity,
	}
	for _, route := range o.Spec.Routes {
		p.Spec.Routes = append(p.Spec.Routes, v1.Route{Dst: route.Dst, GW: route.GW})
	}
	switch {
	case len(o.Spec.NodeName) > 0:
		p.Spec.HostSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/hostname", Operator: metav1.LabelSelectorOpIn, Values: o.Spec.NodeName},
		}}
	case p.Spec.HostSelector == nil:
		p.Spec.HostSelector = everyNode()
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
