package system

import (
	"context"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// kubeOVN takes over from Kube-OVN's IPAM.
func kubeOVN() System {
	return System{
		Name: "kube-ovn", Aliases: []string{"kubeovn"}, Title: "Kube-OVN",
		About: `Read are its objects Subnet, IP and Vip of the group kubeovn.io/v1. Each
subnet becomes a pool for each of its address families, with its gateway,
excluded addresses and namespaces. Addresses of pods stay with them; those of
a Vip are reserved.`,
		Example: `  bcsnetctl import kube-ovn --dry-run=client
  bcsnetctl import kube-ovn --yes`,
		Read: readKubeOVN,
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
		Default    bool     `json:"default"`
	} `json:"spec"`
}

type ovnIP struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodName     string `json:"podName"`
		Namespace   string `json:"namespace"`
		ContainerID string `json:"containerID"`
		PodType     string `json:"podType"`
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
	kind := schema.GroupVersionResource{Group: "kubeovn.io", Version: "v1", Resource: "subnets"}
	subnets, err := read[ovnSubnet](ctx, from, kind, true)
	if err != nil {
		return importer.Rows{}, err
	}
	kind.Resource = "ips"
	ips, err := read[ovnIP](ctx, from, kind, false)
	if err != nil {
		return importer.Rows{}, err
	}
	kind.Resource = "vips"
	vips, err := read[ovnVip](ctx, from, kind, false)
	return ovnRows(subnets, ips, vips), err
}

func ovnRows(subnets []ovnSubnet, ips []ovnIP, vips []ovnVip) importer.Rows {
	r := rows{importer.Rows{System: "kube-ovn"}}
	for i := range subnets {
		r.ovnSubnet(&subnets[i])
	}
	for i := range ips {
		r.ovnIP(&ips[i])
	}
	for i := range vips {
		o := &vips[i]
		for _, text := range each(o.Status.V4, o.Status.V6) {
			r.reserve(object("Vip", o), text, strings.TrimSpace("Vip "+o.Spec.Namespace+" "+o.Name))
		}
	}
	return r.Rows
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
	name, cidrs := object("Subnet", o), each(o.Spec.CIDRBlock)
	for i, text := range cidrs {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			r.conflict(name, "cidrBlock %q: %v", text, err)
			continue
		}
		cidr = cidr.Masked()
		p := importer.Pool(o.Name)
		if i > 0 {
			p.Name += "-" + strings.ToLower(ipaddr.FamilyOf(cidr.Addr()).String())
		}
		p.Spec = v1.BCSNetPoolSpec{
			Net: cidr.Addr().String(), Mask: int32(cidr.Bits()), AvailableIPs: []string{cidr.String()}, MTU: o.Spec.MTU,
			Namespaces: o.Spec.Namespaces, HostSelector: everyNode(), Network: o.Name,
		}
		for _, gateway := range each(o.Spec.Gateway) {
			if a, err := netip.ParseAddr(gateway); err == nil && cidr.Contains(a) {
				p.Spec.Gateway = gateway
			}
		}
		var excluded []string
		for _, e := range o.Spec.ExcludeIPs {
			excluded = append(excluded, strings.ReplaceAll(e, "..", "-"))
		}
		p.Spec.ExcludeIPs = within(cidr, excluded)
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
