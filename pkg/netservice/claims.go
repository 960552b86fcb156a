package netservice

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// planClaims plans the claims, and finds out to which claims each address is bound.
func (m *maker) planClaims() {
	byKey := map[string][]netip.Addr{}
	for _, ip := range m.IPs {
		if a, err := ipaddr.ParseAddr(ip.Name); err == nil && ip.Status.IPClaimKey != "" &&
			ip.phase() != phaseAvailable {
			byKey[ip.Status.IPClaimKey] = append(byKey[ip.Status.IPClaimKey], a)
		}
	}
	for _, old := range m.Claims {
		if why := unusable(old); why != "" {
			m.unusable[old.key()] = why
			m.plan.Left = append(m.plan.Left, Remark{claimObject(old.key()), why})
			continue
		}
		a, err := boundTo(old, byKey[old.key()])
		if err != nil {
			m.unusable[old.key()] = err.Error()
			m.conflict(claimObject(old.key()), "%v", err)
			continue
		}
		if a.IsValid() && (old.Status.BoundedIP != "" || len(byKey[old.key()]) > 0) {
			m.bound[a] = append(m.bound[a], old.key())
		}
		m.planClaim(old, a)
	}
}

func claimObject(key string) string { return "BCSNetIPClaim " + key }

// unusable returns why a claim is not taken over; empty where it is.
func unusable(old Claim) string {
	switch {
	case old.DeletionTimestamp != nil:
		return "it is being deleted"
	case old.Status.Phase == phaseExpired:
		return "it has expired"
	}
	return ""
}

// boundTo returns the address of a claim: the one that it is bound to, else the only one that names it, else the one
// that it asks for; invalid for none.
func boundTo(old Claim, naming []netip.Addr) (a netip.Addr, err error) {
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

// planClaim plans the claim, unless one of its name here serves.
func (m *maker) planClaim(old Claim, a netip.Addr) {
	if ours := m.Ours[old.key()]; ours != nil {
		c, err := claim.FromObject(ours)
		switch {
		case err != nil:
			m.unusable[old.key()] = err.Error()
		case c.Deleting:
			m.unusable[old.key()] = "the claim of its name here is being deleted"
		case c.Release == v1.ReleaseWithPod:
			m.unusable[old.key()] = "the claim of its name here keeps no addresses"
		case a.IsValid() && c.Addresses != nil && !c.Addresses.Contains(a):
			m.unusable[old.key()] = fmt.Sprintf("the claim of its name here is not for %s", a)
		}
		if why := m.unusable[old.key()]; why != "" {
			m.conflict(claimObject(old.key()), "%s", why)
		}
		return
	}
	o := v1.BCSNetIPClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetIPClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name},
		Spec:       v1.BCSNetIPClaimSpec{Replicas: new(int32(1)), ReleasePolicy: v1.ReleaseNever},
	}
	if a.IsValid() {
		o.Spec.Addresses = []string{a.String()}
	}
	if old.Spec.ExpiredDuration != "" {
		keep, err := parseKeep(old.Spec.ExpiredDuration)
		if err != nil {
			m.plan.Left = append(m.plan.Left, Remark{
				claimObject(old.key()), fmt.Sprintf("it keeps its address until somebody frees it: %v", err),
			})
		} else {
			o.Spec.ReleasePolicy, o.Spec.Keep = v1.ReleaseTimed, &metav1.Duration{Duration: keep}
		}
	}
	m.plan.Claims = append(m.plan.Claims, o)
}

// parseKeep parses how long a claim keeps its address, in whole seconds.
func parseKeep(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("expiredDuration %q is no duration", text)
	case d <= 0 || d > v1.MaxKeep:
		return 0, fmt.Errorf("expiredDuration %s is not between 1s and %s", text, explain.FormatSpan(v1.MaxKeep))
	}
	return (d + time.Second - 1).Truncate(time.Second), nil
}

// claimOf returns the claim that an address belongs to, empty for none. cause describes a contradiction.
func (m *maker) claimOf(ip IP, a netip.Addr) (key, cause string) {
	keys := slices.Clone(m.bound[a])
	if named := ip.Status.IPClaimKey; named != "" && ip.phase() != phaseAvailable && !slices.Contains(keys, named) {
		keys = append(keys, named)
	}
	slices.Sort(keys)
	switch {
	case len(keys) == 0:
		return "", ""
	case len(keys) > 1:
		return "", fmt.Sprintf("it belongs to the claims %s and %s", keys[0], keys[1])
	}
	if why, known := m.unusable[keys[0]]; known {
		return "", fmt.Sprintf("it belongs to claim %s: %s", keys[0], why)
	}
	if !slices.ContainsFunc(m.Claims, func(c Claim) bool { return c.key() == keys[0] }) {
		return "", fmt.Sprintf("it belongs to claim %s, which does not exist", keys[0])
	}
	return keys[0], ""
}
