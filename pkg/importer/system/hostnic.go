package system

import (
	"cmp"
	"context"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/hostnic"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// hostnicCNI takes over from hostnic-cni.
func hostnicCNI() System {
	return System{
		Name: "hostnic", Aliases: []string{"hostnic-cni"}, Title: "hostnic-cni",
		About: `It reads the objects IPPool and IPAMBlock of the group
network.qingcloud.com/v1alpha1, VxNetPool, and the ConfigMap
kube-system/hostnic-ipam-config. Each IPPool becomes a pool. If the ConfigMap
gives blocks of it to namespaces, the pool is split and each of these blocks
becomes the block of its namespace.`,
		Example: `  bcsnetctl import hostnic --dry-run=client
  bcsnetctl import hostnic --yes`,
		Read: readHostnic,
	}
}

type hostnicPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CIDR       string `json:"cidr"`
		RangeStart string `json:"rangeStart"`
		RangeEnd   string `json:"rangeEnd"`
		Gateway    string `json:"gateway"`
		BlockSize  int32  `json:"blockSize"`
		Disabled   bool   `json:"disabled"`
	} `json:"spec"`
}

// vxnetPool is a VxNetPool. Its status has which IPPool was made of a vxnet.
type vxnetPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		BlockSize int32 `json:"blockSize"`
	} `json:"spec"`
	Status struct {
		Pools []struct {
			IPPool string `json:"ippool"`
		} `json:"pools"`
	} `json:"status"`
}

func readHostnic(ctx context.Context, from Source) (importer.Rows, error) {
	in := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "network.qingcloud.com", Version: "v1alpha1"}}
	pools := list[hostnicPool](in, "ippools", true)
	sizes := map[string]int32{}
	for _, o := range list[vxnetPool](in, "vxnetpools", false) {
		for _, p := range o.Status.Pools {
			sizes[p.IPPool] = o.Spec.BlockSize
		}
	}
	r := rows{importer.Rows{System: "hostnic"}}
	var mapping hostnic.Mapping
	data, found, err := from.configMap(ctx, "hostnic-ipam-config")
	if found {
		var wrong error
		if mapping, wrong = hostnic.Read(data); wrong != nil {
			r.conflict("ConfigMap kube-system/hostnic-ipam-config", "%v", wrong)
			mapping.Blocks = nil
		}
	}
	for i := range pools {
		r.hostnicPool(&pools[i], cmp.Or(pools[i].Spec.BlockSize, sizes[pools[i].Name]), mapping)
	}
	forEach(in, "ipamblocks", false, func(o *calicoBlock) { r.block(o, "hostnic", "-") })
	return r.Rows, cmp.Or(in.err, err)
}

// hostnicPool adds a pool, and its blocks that namespaces have.
func (r *rows) hostnicPool(o *hostnicPool, blockSize int32, mapping hostnic.Mapping) {
	name := object("IPPool", o)
	subnet, ok := r.subnet(name, "cidr", o.Spec.CIDR)
	if !ok {
		return
	}
	p := poolOf(poolName(o.Name), subnet)
	one := whereaboutsRange{Range: subnet.String(), Start: o.Spec.RangeStart, End: o.Spec.RangeEnd}
	_, available, err := one.parse()
	if err != nil {
		r.conflict(name, "its range: %v", err)
		return
	}
	given, _ := ipaddr.ParseRange(available[0]) // it was just written
	outside := ipaddr.Subtract(ipaddr.SetOf(netipx.RangeOfPrefix(subnet)), ipaddr.SetOf(given))
	for _, part := range outside.Ranges() {
		p.Spec.ExcludeIPs = append(p.Spec.ExcludeIPs, ipaddr.FormatRange(part))
	}
	if gateway, err := ipaddr.ParseAddr(o.Spec.Gateway); err == nil && ipaddr.Reaches(subnet, gateway) {
		p.Spec.Gateway = gateway.String()
	}
	if o.Spec.Disabled {
		r.disabled(name)
	}
	var blocks []v1.BCSNetPool
	for _, b := range mapping.Blocks {
		if !b.Addrs.IsValid() || !subnet.Contains(b.Addrs.Addr()) || b.Addrs.Bits() < subnet.Bits() {
			continue
		}
		child := importer.Pool(block.Name(p.Name, b.Addrs))
		child.Spec = v1.BCSNetPoolSpec{
			Net: p.Spec.Net, Mask: p.Spec.Mask, Gateway: p.Spec.Gateway, Parent: p.Name,
			AvailableIPs: []string{b.Addrs.String()}, Namespaces: []string{b.Namespace}, Priority: b.Priority(),
		}
		blocks = append(blocks, child)
	}
	if len(blocks) > 0 {
		p.Spec.BlockSize, p.Spec.AutoAssign = blockSize, mapping.AutoAssign
	}
	r.Pools = append(append(r.Pools, p), blocks...)
}
