package system

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ipkeeper takes over from crd-ipkeeper.
func ipkeeper() System {
	return System{
		Name: "crd-ipkeeper", Aliases: []string{"ipkeeper"}, Title: "crd-ipkeeper",
		About: `It reads the objects StaticIP of the group ipkeeper.generals.space/v1. The
addresses of each subnet become a pool that serves only requests for one of
them, like the annotations ipkeeper.generals.space/ip_address and ip_pool. An
address that no pod has stays free for its app.`,
		Example: `  bcsnetctl import crd-ipkeeper --dry-run=client
  bcsnetctl import crd-ipkeeper --yes`,
		Read: readIPKeeper,
	}
}

// staticIP is a StaticIP. IPMap has for each address, with its prefix length, the pod that has it, or null.
type staticIP struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		OwnerKind string `json:"ownerKind"`
		IPPool    string `json:"ipPool"`
		Gateway   string `json:"gateway"`
		IPMap     map[string]*struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"ipmap"`
	} `json:"spec"`
}

func readIPKeeper(ctx context.Context, from Source) (importer.Rows, error) {
	r := rows{importer.Rows{System: "crd-ipkeeper"}}
	in := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "ipkeeper.generals.space", Version: "v1"}}
	pools := map[netip.Prefix]*v1.BCSNetPool{}
	forEach(in, "staticips", true, func(o *staticIP) { r.staticIP(o, pools) })
	for _, subnet := range slices.SortedFunc(maps.Keys(pools), netip.Prefix.Compare) {
		p := *pools[subnet]
		slices.Sort(p.Spec.AvailableIPs)
		p.Spec.AvailableIPs = slices.Compact(p.Spec.AvailableIPs)
		r.Pools = append(r.Pools, p)
	}
	return r.Rows, in.err
}

// staticIP adds the addresses of an object, and them to the pools of their subnets.
func (r *rows) staticIP(o *staticIP, pools map[netip.Prefix]*v1.BCSNetPool) {
	name := object("StaticIP", o)
	texts := slices.Collect(maps.Keys(o.Spec.IPMap))
	for text := range strings.SplitSeq(o.Spec.IPPool, ",") {
		if text = strings.TrimSpace(text); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	for _, text := range texts {
		at, err := netip.ParsePrefix(text)
		if err != nil {
			r.conflict(name, "address %q: %v", text, err)
			continue
		}
		p := pools[at.Masked()]
		if p == nil {
			made := poolOf(poolName("ipkeeper-"+at.Masked().String()), at.Masked())
			p, pools[at.Masked()] = &made, &made
			p.Spec.AvailableIPs, p.Spec.Default = nil, new(false)
		}
		p.Spec.AvailableIPs = append(p.Spec.AvailableIPs, at.Addr().String())
		gateway, err := ipaddr.ParseAddr(o.Spec.Gateway)
		switch {
		case err != nil || !ipaddr.Reaches(at, gateway):
		case p.Spec.Gateway == "":
			p.Spec.Gateway = gateway.String()
		case p.Spec.Gateway != gateway.String():
			r.left(name, "its gateway is %s; pool %s has %s of another StaticIP", gateway, p.Name, p.Spec.Gateway)
		}
		if owner := o.Spec.IPMap[text]; owner != nil && owner.Name != "" {
			r.add(text, importer.Address{Object: name + ", " + text, State: importer.Held, Holder: lease.Holder{
				IfName: lease.DefaultIfName, Namespace: owner.Namespace, PodName: owner.Name, PodUID: owner.UID,
			}})
		}
	}
}
