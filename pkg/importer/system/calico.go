package system

import (
	"context"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// calico takes over from Calico's IPAM.
func calico() System {
	return System{
		Name: "calico", Aliases: []string{"calico-ipam"}, Title: "Calico IPAM",
		About: `It reads the objects IPPool, IPAMBlock and IPReservation of the group
crd.projectcalico.org/v1. An IPPool becomes a pool without a gateway: Calico
routes, so set the gateway of the network that pods shall have. Addresses that
Calico gave to nodes for their tunnels are reserved; those of pods stay with
them.`,
		Example: `  bcsnetctl import calico --dry-run=client
  bcsnetctl import calico --yes`,
		Read: readCalico, Withdrawer: calicoWithdrawer(),
	}
}

type calicoPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CIDR         string `json:"cidr"`
		NodeSelector string `json:"nodeSelector"`
		Disabled     bool   `json:"disabled"`
	} `json:"spec"`
}

// calicoBlock is an IPAMBlock. Allocations has for each address of the block the index of its attributes, or null.
type calicoBlock struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CIDR        string             `json:"cidr"`
		Allocations []*int             `json:"allocations"`
		Attributes  []calicoAttributes `json:"attributes"`
		Deleted     bool               `json:"deleted"`
	} `json:"spec"`
}

type calicoAttributes struct {
	Handle    string            `json:"handle_id"`
	Secondary map[string]string `json:"secondary"`
}

type calicoReservation struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ReservedCIDRs []string `json:"reservedCIDRs"`
	} `json:"spec"`
}

func readCalico(ctx context.Context, from Source) (importer.Rows, error) {
	r := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}}
	out := rows{importer.Rows{System: "calico"}}
	forEach(r, "ippools", true, out.calicoPool)
	forEach(r, "ipamblocks", false, func(o *calicoBlock) { out.block(o, "Calico", ".") })
	forEach(r, "ipreservations", false, func(o *calicoReservation) {
		out.reservation("IPReservation", o, o.Spec.ReservedCIDRs)
	})
	return out.Rows, r.err
}

func (r *rows) calicoPool(o *calicoPool) {
	name := object("IPPool", o)
	cidr, ok := r.subnet(name, "cidr", o.Spec.CIDR)
	if !ok {
		return
	}
	p := poolOf(o.Name, cidr)
	if selector := strings.TrimSpace(o.Spec.NodeSelector); selector != "" && selector != "all()" {
		p.Spec.HostSelector = nil
		r.left(name, "its nodeSelector %q is not taken over: say which hosts may draw from the pool: "+
			"bcsnetctl pool edit %s", o.Spec.NodeSelector, o.Name)
	}
	if o.Spec.Disabled {
		r.disabled(name)
	}
	r.Pools = append(r.Pools, p)
}

// block adds the addresses of a block that are allocated. A handle ends with the container after a separator.
func (r *rows) block(o *calicoBlock, title, separator string) {
	name := object("IPAMBlock", o)
	cidr, ok := r.subnet(name, "cidr", o.Spec.CIDR)
	if !ok || o.Spec.Deleted {
		return
	}
	for i, index := range o.Spec.Allocations {
		addr := ipaddr.Advance(cidr.Addr(), uint64(i))
		switch {
		case index == nil:
		case !cidr.Contains(addr):
			r.conflict(name, "it has more allocations than %s has addresses", cidr)
			return
		case *index < 0 || *index >= len(o.Spec.Attributes):
			r.conflict(name, "%s has attributes %d, which do not exist", addr, *index)
		default:
			r.blockAddress(name, addr, o.Spec.Attributes[*index], title, separator)
		}
	}
}

// blockAddress adds an allocated address: that of a pod's container, or one of the node itself.
func (r *rows) blockAddress(object string, addr netip.Addr, a calicoAttributes, title, separator string) {
	row := importer.Address{Addr: addr, Object: object + ", " + addr.String()}
	if at, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", a.Secondary["timestamp"]); err == nil {
		row.Updated = at
	}
	if a.Secondary["pod"] == "" {
		row.State, row.Reason = importer.Kept, title+": "+a.Handle
		r.Addresses = append(r.Addresses, row)
		return
	}
	row.State = importer.Held
	row.Holder = lease.Holder{Namespace: a.Secondary["namespace"], PodName: a.Secondary["pod"]}
	if i := strings.LastIndex(a.Handle, separator); i >= 0 { // NETWORK.CONTAINER, or NAMESPACE-POD-CONTAINER
		row.Holder.ContainerID = a.Handle[i+1:]
	}
	r.Addresses = append(r.Addresses, row)
}
