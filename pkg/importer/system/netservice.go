package system

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// netservice takes over from the released bcs-netservice-controller.
func netservice() System {
	return System{
		Name: "netservice", Aliases: []string{"bcs-netservice", "bcs-netservice-controller"},
		Title: "the released bcs-netservice-controller",
		About: `It reads the objects BCSNetPool, BCSNetIPClaim and BCSNetIP of the group
netservice.bkbcs.tencent.com/v1. Claims keep their names and are for the
address that they are bound to, for as long as expiredDuration says, else
until somebody frees it. Addresses stay with the pod or the claim that has
them. Addresses that are Reserved for no claim are reserved.`,
		Example: `  bcsnetctl import netservice --dry-run=client
  bcsnetctl import netservice --yes -o json`,
		Read: readNetservice, Withdrawer: netserviceWithdrawer(),
	}
}

// readNetservice reads the objects. The earliest releases have no claims.
func readNetservice(ctx context.Context, from Source) (importer.Rows, error) {
	r := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "netservice.bkbcs.tencent.com", Version: "v1"}}
	out := rows{importer.Rows{System: "netservice"}}
	forEach(r, "bcsnetpools", true, func(p *netservicePool) {
		o := importer.Pool(p.Name)
		o.Spec = v1.BCSNetPoolSpec{
			Net: p.Spec.Net, Mask: p.Spec.Mask, Gateway: p.Spec.Gateway, Hosts: p.Spec.Hosts,
			AvailableIPs: p.Spec.AvailableIPs,
		}
		out.Pools = append(out.Pools, o)
	})
	naming := map[string][]netip.Addr{} // addresses by the claim that they name
	forEach(r, "bcsnetips", false, func(ip *netserviceIP) {
		a := ip.row()
		out.add(ip.Name, a)
		if addr, err := ipaddr.ParseAddr(ip.Name); err == nil && a.Claim != "" {
			naming[a.Claim] = append(naming[a.Claim], addr)
		}
	})
	claims := list[netserviceClaim](r, "bcsnetipclaims", false)
	slices.SortFunc(claims, func(a, b netserviceClaim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range claims {
		out.Claims = append(out.Claims, out.netserviceClaim(c, naming[c.key()]))
	}
	return out.Rows, r.err
}

// row returns the address as the released program has it.
func (ip *netserviceIP) row() importer.Address {
	s := ip.Status
	host, _ := ipaddr.ParseAddr(s.Host)
	a := importer.Address{
		Object: object("BCSNetIP", ip), Updated: ip.updated(), Counting: s.KeepDuration != "",
		Holder: lease.Holder{
			Host: host, ContainerID: s.ContainerID, IfName: lease.DefaultIfName, Namespace: s.PodNamespace,
			PodName: s.PodName,
		},
	}
	switch phase := ip.phase(); phase {
	case phaseAvailable:
		return a
	case phaseActive:
		a.State = importer.Held
		if s.PodName == "" {
			a.Holder = lease.Holder{}
		}
	case phaseReserved:
		a.State, a.Reason = importer.Kept, "it is Reserved for no claim"
	default:
		a.State, a.Reason = importer.Unclear, fmt.Sprintf("its phase %q is not known", phase)
	}
	a.Claim = s.IPClaimKey
	return a
}

// netserviceClaim returns a claim, and says what of it is not taken over.
func (r *rows) netserviceClaim(old netserviceClaim, naming []netip.Addr) importer.Claim {
	c := importer.Claim{Namespace: old.Namespace, Name: old.Name, Object: object("BCSNetIPClaim", &old)}
	switch {
	case old.DeletionTimestamp != nil:
		c.Left = "it is being deleted"
		return c
	case old.Status.Phase == phaseExpired:
		c.Left = "it has expired"
		return c
	}
	var err error
	if c.Addr, err = boundTo(old, naming); err != nil {
		c.Left, c.Contradiction = err.Error(), true
		return c
	}
	c.Bound = old.Status.BoundedIP != "" || len(naming) > 0
	if old.Spec.ExpiredDuration == "" {
		return c
	}
	if c.Keep, err = parseKeep(old.Spec.ExpiredDuration); err != nil {
		r.left(c.Object, "it keeps its address until somebody frees it: %v", err)
	}
	return c
}

// boundTo returns the address of a claim: the one that it is bound to, else the only one that names it, else the one
// that it asks for; invalid for none.
func boundTo(old netserviceClaim, naming []netip.Addr) (a netip.Addr, err error) {
	text := old.Status.BoundedIP
	switch {
	case text != "" && old.Spec.BCSNetIPName != "" && text != old.Spec.BCSNetIPName:
		return a, fmt.Errorf("it is bound to %s and asks for %s", text, old.Spec.BCSNetIPName)
	case text == "" && len(naming) > 1:
		return a, fmt.Errorf("%d addresses name it, and it says of none that it is bound to it", len(naming))
	case text == "" && len(naming) == 1:
		return naming[0], nil
	case text == "" && old.Spec.BCSNetIPName == "":
		return a, nil
	case text == "":
		text = old.Spec.BCSNetIPName
	}
	return ipaddr.ParseAddr(text)
}

// parseKeep parses how long a claim keeps its address, in whole seconds.
func parseKeep(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("expiredDuration %q is not a duration", text)
	case d <= 0 || d > v1.MaxKeep:
		return 0, fmt.Errorf("expiredDuration %s is not between 1s and %s", text, explain.FormatSpan(v1.MaxKeep))
	}
	return (d + time.Second - 1).Truncate(time.Second), nil
}

// Phases of addresses and claims, as the released program writes them.
const (
	phaseActive    = "Active"
	phaseReserved  = "Reserved"
	phaseAvailable = "Available"
	phaseExpired   = "Expired"
)

// netservicePool is a BCSNetPool of the released program.
type netservicePool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Net          string   `json:"net"`
		Mask         int32    `json:"mask"`
		Gateway      string   `json:"gateway"`
		Hosts        []string `json:"hosts,omitempty"`
		AvailableIPs []string `json:"availableIPs,omitempty"`
	} `json:"spec"`
}

// netserviceIP is a BCSNetIP of the released program; its name is the address.
type netserviceIP struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		// Phase is called status in the earliest releases.
		Phase        string `json:"phase,omitempty"`
		Status       string `json:"status,omitempty"`
		Host         string `json:"host,omitempty"`
		ContainerID  string `json:"containerID,omitempty"`
		IPClaimKey   string `json:"ipClaimKey,omitempty"`
		PodName      string `json:"podName,omitempty"`
		PodNamespace string `json:"podNamespace,omitempty"`
		UpdateTime   string `json:"updateTime,omitempty"`
		KeepDuration string `json:"keepDuration,omitempty"`
	} `json:"status"`
}

// netserviceClaim is a BCSNetIPClaim of the released program.
type netserviceClaim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		BCSNetIPName    string `json:"bcsNetIPName,omitempty"`
		ExpiredDuration string `json:"expiredDuration,omitempty"`
	} `json:"spec"`
	Status struct {
		BoundedIP string `json:"boundedIP,omitempty"`
		Phase     string `json:"phase,omitempty"`
	} `json:"status"`
}

// phase returns the phase that the released program gave the address.
func (ip *netserviceIP) phase() string {
	return cmp.Or(ip.Status.Phase, ip.Status.Status, phaseAvailable)
}

// updated returns when the released program last changed the address; zero if the object does not have it.
func (ip *netserviceIP) updated() time.Time {
	at, _ := time.Parse(time.RFC3339, ip.Status.UpdateTime)
	return at
}

// key returns namespace/name of the claim.
func (c netserviceClaim) key() string { return c.Namespace + "/" + c.Name }
