package system

import (
	"cmp"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// listed withdraws addresses by a list in the spec of an object.
type listed struct {
	schema.GroupVersionResource

	field  string
	format func(*netipx.IPSet) []string
	// own is the kind of the object if it is ours, and bcsnet- and the pool its name; else it has the pool's name.
	own string
	// given reports whether the list has what is allocated, rather than what is not.
	given bool
	// family is the field for the version of IP, which a webhook of Spiderpool sets as well.
	family string
}

// spiderWithdrawer reserves. Spiderpool leaves pods alone whose address is reserved.
func spiderWithdrawer() importer.Withdrawer {
	return listed{resource("spiderpool.spidernet.io", "v2beta1", "spiderreservedips"), "ips", formatRanges("-"),
		"SpiderReservedIP", false, "ipVersion"}
}

// calicoWithdrawer reserves. Calico leaves pods alone whose address is reserved.
func calicoWithdrawer() importer.Withdrawer {
	return listed{resource("crd.projectcalico.org", "v1", "ipreservations"), "reservedCIDRs", formatPrefixes,
		"IPReservation", false, ""}
}

// ovnWithdrawer excludes. Kube-OVN leaves pods alone whose address is excluded.
func ovnWithdrawer() importer.Withdrawer {
	return listed{resource("kubeovn.io", "v1", "subnets"), "excludeIps", formatRanges(".."), "", false, ""}
}

// netserviceWithdrawer takes addresses out of availableIPs. A webhook of the released program refuses that for an
// address that a pod has.
func netserviceWithdrawer() importer.Withdrawer {
	return listed{resource("netservice.bkbcs.tencent.com", "v1", "bcsnetpools"), "availableIPs", formatAddrs,
		"", true, ""}
}

func (l listed) Kind() schema.GroupVersionResource { return l.GroupVersionResource }

func (l listed) InUse() bool { return !l.given }

func (l listed) ByName() bool { return false }

func (l listed) New(p *v1.BCSNetPool) *unstructured.Unstructured {
	if l.own == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(l.GroupVersion().WithKind(l.own))
	o.SetName("bcsnet-" + p.Name)
	return o
}

func (l listed) Carries(o *unstructured.Unstructured, p *v1.BCSNetPool) bool {
	if l.own != "" {
		return o.GetName() == "bcsnet-"+p.Name
	}
	// A Subnet of two families is two pools of one network.
	return o.GetName() == cmp.Or(p.Spec.Network, p.Name)
}

// Problem finds an object of the name of ours that somebody else made.
func (l listed) Problem(o *unstructured.Unstructured, p *v1.BCSNetPool) string {
	if l.own != "" && l.Carries(o, p) && o.GetAnnotations()[v1.WithdrawnAnnotation] == "" {
		return "it has the name under which addresses are withdrawn, and no import made it: rename it"
	}
	return ""
}

func (l listed) Spent(o *unstructured.Unstructured) bool {
	entries, _, err := l.entries(o)
	return l.own != "" && err == nil && len(entries) == 0
}

func (l listed) entries(o *unstructured.Unstructured) (entries []string, set *netipx.IPSet, err error) {
	if entries, _, err = unstructured.NestedStringSlice(o.Object, "spec", l.field); err == nil {
		set, err = setOf(entries)
	}
	return entries, set, err
}

func (l listed) Withdrawn(o *unstructured.Unstructured) (*netipx.IPSet, error) {
	ours, err := noted(o)
	if err != nil || len(ours.Ranges()) == 0 {
		return ours, err
	}
	_, has, err := l.entries(o)
	switch {
	case err != nil:
		return nil, err
	case l.given:
		return ipaddr.Subtract(ours, has), nil
	default:
		return ipaddr.Intersect(ours, has), nil
	}
}

func (l listed) Set(o *unstructured.Unstructured, withdrawn *netipx.IPSet) error {
	before, err := noted(o)
	if err != nil {
		return err
	}
	entries, has, err := l.entries(o)
	if err != nil {
		return err
	}
	var list []any
	if l.given {
		back := ipaddr.Subtract(before, has, withdrawn)
		list, err = cut(entries, withdrawn, back, l.format)
	} else {
		list, err = replaced(entries, before, withdrawn, l.format)
	}
	if err != nil {
		return err
	}
	note(o, withdrawn)
	if l.family != "" && len(withdrawn.Ranges()) > 0 {
		version := map[bool]int64{false: 4, true: 6}[ipaddr.HasFamily(withdrawn, ipaddr.IPv6)]
		if err := unstructured.SetNestedField(o.Object, version, "spec", l.family); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(o.Object, list, "spec", l.field)
}
