package system

import (
	"context"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// kubeOVN takes over from Kube-OVN's IPAM.
func kubeOVN() System {
	return System{
		Name: "kube-ovn", Aliases: []string{"kubeovn"}, Title: "Kube-OVN",
		About: `It reads the objects Subnet, IP and Vip of the group kubeovn.io/v1. Each
subnet becomes a pool for each of its address families, with its gateway,
excluded addresses and namespaces. Addresses of pods stay with them; those of
a Vip are reserved.`,
		Example: `  bcsnetctl import kube-ovn --dry-run=client
  bcsnetctl import kube-ovn --yes`,
		Read: readKubeOVN, Withdrawer: ovnWithdrawer(),
	}
}

type ovnSubnet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CIDRBlock  string   `json:"cidrBlock"`
		Gateway    string   `json:"gateway"`
		ExcludeIPs []string `json:"excludeIps"`
		Namespaces []string `json:"namespaces"`
		MTU        int32    `json:"mtu"`
	} `json:"spec"`
}

type ovnIP struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodName     string `json:"podName"`
		Namespace   string `json:"namespace"`
		ContainerID string `json:"containerID"`
		V4          string `json:"v4IpAddress"`
		V6          string `json:"v6IpAddress"`
		IP          string `json:"ipAddress"`
	} `json:"spec"`
}

type ovnVip struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Namespace string `json:"namespace"`
	} `json:"spec"`
	Status struct {
		V4 string `json:"v4ip"`
		V6 string `json:"v6ip"`
	} `json:"status"`
}

func readKubeOVN(ctx context.Context, from Source) (importer.Rows, error) {
	r := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "kubeovn.io", Version: "v1"}}
	out := rows{importer.Rows{System: "kube-ovn"}}
	forEach(r, "subnets", true, out.ovnSubnet)
	forEach(r, "ips", false, out.ovnIP)
	forEach(r, "vips", false, func(o *ovnVip) {
		for _, text := range each(o.Status.V4, o.Status.V6) {
			out.reserve(object("Vip", o), text, strings.TrimSpace("Vip "+o.Spec.Namespace+" "+o.Name),
				ipaddr.SetOf())
		}
	})
	return out.Rows, r.err
}

// each returns the texts of comma-separated lists, without empty ones.
func each(lists ...string) (texts []string) {
	for _, list := range lists {
		for text := range strings.SplitSeq(list, ",") {
			if text = strings.TrimSpace(text); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// ovnSubnet adds a pool for each address family of a subnet.
func (r *rows) ovnSubnet(o *ovnSubnet) {
	name := object("Subnet", o)
	for i, text := range each(o.Spec.CIDRBlock) {
		cidr, ok := r.subnet(name, "cidrBlock", text)
		if !ok {
			continue
		}
		p := poolOf(o.Name, cidr)
		if i > 0 {
			p.Name += "-" + strings.ToLower(ipaddr.FamilyOf(cidr.Addr()).String())
		}
		p.Spec.MTU, p.Spec.Namespaces, p.Spec.Network = o.Spec.MTU, o.Spec.Namespaces, o.Name
		for _, gateway := range each(o.Spec.Gateway) {
			if a, err := netip.ParseAddr(gateway); err == nil && ipaddr.Reaches(cidr, a) {
				p.Spec.Gateway = gateway
			}
		}
		var excluded []string
		for _, e := range o.Spec.ExcludeIPs { // of both families
			excluded = append(excluded, strings.ReplaceAll(e, "..", "-"))
		}
		p.Spec.ExcludeIPs = r.excluded(name, cidr, excluded)
		r.Pools = append(r.Pools, p)
	}
}

// ovnIP adds the addresses of a pod; those of a node are reserved.
func (r *rows) ovnIP(o *ovnIP) {
	texts := each(o.Spec.V4, o.Spec.V6)
	if len(texts) == 0 {
		texts = each(o.Spec.IP)
	}
	for _, text := range texts {
		row := importer.Address{Object: object("IP", o), State: importer.Held, Holder: lease.Holder{
			ContainerID: o.Spec.ContainerID, Namespace: o.Spec.Namespace, PodName: o.Spec.PodName,
		}}
		if o.Spec.Namespace == "" || o.Spec.PodName == "" {
			row.State, row.Reason, row.Holder = importer.Kept, "Kube-OVN: "+o.Name, lease.Holder{}
		}
		r.add(text, row)
	}
}
