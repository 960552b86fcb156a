package system

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// whereabouts takes over from Whereabouts.
func whereabouts() System {
	return System{
		Name: "whereabouts", Title: "Whereabouts",
		About: `It reads the objects IPPool and OverlappingRangeIPReservation of the group
whereabouts.cni.cncf.io/v1alpha1, and the NetworkAttachmentDefinitions whose
ipam is of the type whereabouts: range, exclude, gateway, routes and VLAN
stand there. Each range becomes a pool whose network has the name of the
definition; give that name to ipam.network when you change the type to
bcsnet-ipam.`,
		Example: `  bcsnetctl import whereabouts --dry-run=client
  bcsnetctl import whereabouts --yes`,
		Read: readWhereabouts, Withdrawer: rangeExcludes{},
	}
}

// whereaboutsPool is an IPPool: the addresses of a range that are allocated, by their distance from its first one.
type whereaboutsPool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Range       string                           `json:"range"`
		Allocations map[string]whereaboutsAllocation `json:"allocations"`
	} `json:"spec"`
}

type whereaboutsAllocation struct {
	ContainerID string `json:"id"`
	PodRef      string `json:"podref"`
	IfName      string `json:"ifname"`
}

// whereaboutsReservation is an OverlappingRangeIPReservation; its name is the address with "-" for ":", after the name
// of the network if that has one.
type whereaboutsReservation struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ContainerID string `json:"containerid"`
		PodRef      string `json:"podref"`
		IfName      string `json:"ifname"`
	} `json:"spec"`
}

// attachment is a NetworkAttachmentDefinition.
type attachment struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Config string `json:"config"`
	} `json:"spec"`
}

// mainPlugin has the fields that are read from a network configuration, or from one plugin of a list.
type mainPlugin struct {
	VLAN    int32           `json:"vlan"`
	VLANID  int32           `json:"vlanId"`
	MTU     int32           `json:"mtu"`
	IPAM    whereaboutsIPAM `json:"ipam"`
	Plugins []mainPlugin    `json:"plugins"`
}

type whereaboutsIPAM struct {
	whereaboutsRange

	Type    string             `json:"type"`
	Gateway string             `json:"gateway"`
	Routes  []v1.Route         `json:"routes"`
	Ranges  []whereaboutsRange `json:"ipRanges"`
}

type whereaboutsRange struct {
	Range   string   `json:"range"`
	Start   string   `json:"range_start"`
	End     string   `json:"range_end"`
	Exclude []string `json:"exclude"`
}

func readWhereabouts(ctx context.Context, from Source) (importer.Rows, error) {
	r := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1"}}
	definitions := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}}
	nads := list[attachment](definitions, "network-attachment-definitions", false)
	out := whereaboutsReader{rows: rows{importer.Rows{System: "whereabouts"}}, ranges: map[string]string{},
		allocated: map[netip.Addr]bool{}}
	slices.SortFunc(nads, func(a, b attachment) int { // the first one of a range makes the pool: one with a gateway
		return cmp.Or(
			cmp.Compare(strings.Count(b.Spec.Config, `"gateway"`), strings.Count(a.Spec.Config, `"gateway"`)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range nads {
		out.definition(&nads[i])
	}
	forEach(r, "ippools", true, out.pool)
	forEach(r, "overlappingrangeipreservations", false, out.reservation)
	return out.Rows, cmp.Or(r.err, definitions.err)
}

// whereaboutsReader collects the rows.
type whereaboutsReader struct {
	rows

	// ranges has the definition that made the pool of a range.
	ranges map[string]string
	// allocated are the addresses that IPPools have.
	allocated map[netip.Addr]bool
}

// definition adds the pools of a NetworkAttachmentDefinition.
func (r *whereaboutsReader) definition(o *attachment) {
	name := object("NetworkAttachmentDefinition", o)
	var config mainPlugin
	if err := json.Unmarshal([]byte(o.Spec.Config), &config); err != nil {
		r.left(name, "its config cannot be read: %v", err)
		return
	}
	for _, p := range append([]mainPlugin{config}, config.Plugins...) {
		if p.IPAM.Type != "whereabouts" {
			continue
		}
		all := p.IPAM.Ranges
		if p.IPAM.Range != "" {
			all = append([]whereaboutsRange{p.IPAM.whereaboutsRange}, all...)
		}
		for i, one := range all {
			r.rangeOf(name, o.Name, i, one, p)
		}
	}
}

// rangeOf adds the pool of a range of a definition. Only the first range has its gateway and routes.
func (r *whereaboutsReader) rangeOf(object, network string, i int, one whereaboutsRange, p mainPlugin) {
	subnet, available, err := one.parse()
	if err != nil {
		r.conflict(object, "range %q: %v", one.Range, err)
		return
	}
	if first, known := r.ranges[subnet.String()]; known {
		r.left(object, "its range %s is that of %s, whose settings the pool has", subnet, first)
		return
	}
	r.ranges[subnet.String()] = object
	o := poolOf(poolName(network), subnet)
	if i > 0 || slices.ContainsFunc(r.Pools, func(p v1.BCSNetPool) bool { return p.Name == o.Name }) {
		o.Name = poolName(network + "-" + subnet.String())
	}
	o.Spec.AvailableIPs, o.Spec.ExcludeIPs = available, r.excluded(object, subnet, one.Exclude)
	o.Spec.Network, o.Spec.VLAN, o.Spec.MTU = poolName(network), cmp.Or(p.VLAN, p.VLANID), p.MTU
	if gateway, err := netip.ParseAddr(p.IPAM.Gateway); err == nil && ipaddr.Reaches(subnet, gateway) {
		o.Spec.Gateway = gateway.String()
	}
	if i == 0 {
		o.Spec.Routes = p.IPAM.Routes
	}
	r.Pools = append(r.Pools, o)
}

// parse returns the subnet of a range and the addresses that it gives. A range is a CIDR, or "first-last/bits".
func (one whereaboutsRange) parse() (subnet netip.Prefix, available []string, err error) {
	text, start := one.Range, one.Start
	if from, rest, ok := strings.Cut(text, "-"); ok {
		to, bits, _ := strings.Cut(rest, "/")
		text, start, one.End = from+"/"+bits, from, to
	}
	if subnet, err = netip.ParsePrefix(strings.TrimSpace(text)); err != nil {
		return subnet, nil, err
	}
	subnet = subnet.Masked()
	if start == "" && one.End == "" {
		return subnet, []string{subnet.String()}, nil
	}
	first, last := subnet.Addr(), netipx.PrefixLastIP(subnet)
	if start != "" {
		if first, err = ipaddr.ParseAddr(strings.TrimSpace(start)); err != nil {
			return subnet, nil, err
		}
	}
	if one.End != "" {
		if last, err = ipaddr.ParseAddr(strings.TrimSpace(one.End)); err != nil {
			return subnet, nil, err
		}
	}
	return subnet, []string{ipaddr.FormatRange(netipx.IPRangeFrom(first, last))}, nil
}

// pool adds the allocations of an IPPool, and a pool if no definition has its range any more.
func (r *whereaboutsReader) pool(o *whereaboutsPool) {
	name := object("IPPool", o)
	subnet, ok := r.subnet(name, "range", o.Spec.Range)
	if !ok {
		return
	}
	if !r.covered(subnet) {
		r.ranges[subnet.String()] = name
		p := poolOf(poolName("whereabouts-"+subnet.String()), subnet)
		p.Spec.Network = p.Name
		r.Pools = append(r.Pools, p)
		r.left(name, "no NetworkAttachmentDefinition has its range %s: gateway, VLAN and routes are not known", subnet)
	}
	for _, offset := range slices.Sorted(maps.Keys(o.Spec.Allocations)) {
		a := o.Spec.Allocations[offset]
		n, err := strconv.ParseUint(offset, 10, 64)
		addr := ipaddr.Advance(subnet.Addr(), n)
		if err != nil || !subnet.Contains(addr) {
			r.conflict(name, "allocation %q lies outside %s", offset, subnet)
			continue
		}
		r.allocated[addr] = true
		r.Addresses = append(r.Addresses, whereaboutsAddress(fmt.Sprintf("%s, allocation %s", name, offset),
			a.ContainerID, a.PodRef, a.IfName, addr))
	}
}

// reservation adds an address that no IPPool has; the others are known from there.
func (r *whereaboutsReader) reservation(o *whereaboutsReservation) {
	name := object("OverlappingRangeIPReservation", o)
	var addr netip.Addr
	for text := o.Name; text != ""; _, text, _ = strings.Cut(text, "-") {
		a, err := netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
		if err != nil {
			continue
		}
		if r.allocated[a] {
			return
		}
		if !addr.IsValid() {
			addr = a
		}
	}
	if !addr.IsValid() {
		r.conflict(name, "its name ends with no address")
		return
	}
	r.Addresses = append(r.Addresses,
		whereaboutsAddress(name, o.Spec.ContainerID, o.Spec.PodRef, o.Spec.IfName, addr))
}

// covered reports whether a pool of a definition contains the range. The range of a node's slice is part of such a
// pool.
func (r *whereaboutsReader) covered(subnet netip.Prefix) bool {
	return slices.ContainsFunc(r.Pools, func(p v1.BCSNetPool) bool {
		whole, err := netip.ParsePrefix(p.Spec.Net + "/" + strconv.Itoa(int(p.Spec.Mask)))
		return err == nil && whole.Bits() <= subnet.Bits() && whole.Contains(subnet.Addr())
	})
}

func whereaboutsAddress(object, container, podRef, ifName string, addr netip.Addr) importer.Address {
	namespace, name := split(podRef)
	return importer.Address{Addr: addr, Object: object, State: importer.Held, Holder: lease.Holder{
		ContainerID: container, IfName: ifName, Namespace: namespace, PodName: name,
	}}
}
