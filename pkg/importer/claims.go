package importer

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
)

// planClaims plans the claims, and finds out to which claims each address is bound.
func (m *maker) planClaims() {
	for _, c := range m.Rows.Claims {
		m.claims[c.Key()] = c.Object
		switch {
		case c.Left != "" && c.Contradiction:
			m.unusable[c.Key()] = c.Left
			m.conflict(c.Object, "%s", c.Left)
			continue
		case c.Left != "":
			m.unusable[c.Key()] = c.Left
			m.plan.Left = append(m.plan.Left, Remark{c.Object, c.Left})
			continue
		case c.Addr.IsValid() && c.Bound:
			m.bound[c.Addr] = append(m.bound[c.Addr], c.Key())
		}
		m.planClaim(c)
	}
}

// planClaim plans the claim, unless one of its name here serves.
func (m *maker) planClaim(old Claim) {
	a := old.Addr
	if ours := m.Ours[old.Key()]; ours != nil {
		c, err := claim.FromObject(ours)
		switch {
		case err == nil && !c.Deleting && old.Made != nil:
			m.compare(old.Object, ours.Spec, old.Made.Spec)
		case err != nil:
			m.unusable[old.Key()] = err.Error()
		case c.Deleting:
			m.unusable[old.Key()] = "the claim of its name here is being deleted"
		case c.Release == v1.ReleaseWithPod:
			m.unusable[old.Key()] = "the claim of its name here keeps no addresses"
		case a.IsValid() && c.Addresses != nil && !c.Addresses.Contains(a):
			m.unusable[old.Key()] = fmt.Sprintf("the claim of its name here is not for %s", a)
		}
		if why := m.unusable[old.Key()]; why != "" {
			m.conflict(old.Object, "%s", why)
		}
		return
	}
	if old.Made != nil {
		m.plan.Claims = append(m.plan.Claims, *old.Made)
		return
	}
	o := v1.BCSNetIPClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetIPClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name, Labels: m.label()},
		Spec:       v1.BCSNetIPClaimSpec{Replicas: new(int32(1)), ReleasePolicy: v1.ReleaseNever},
	}
	if a.IsValid() {
		o.Spec.Addresses = []string{a.String()}
	}
	if old.Keep > 0 {
		o.Spec.ReleasePolicy, o.Spec.Keep = v1.ReleaseTimed, &metav1.Duration{Duration: old.Keep}
	}
	m.plan.Claims = append(m.plan.Claims, o)
}

// claimOf returns the claim that an address belongs to, empty for none. cause describes a contradiction.
func (m *maker) claimOf(row Address) (key, cause string) {
	keys := slices.Clone(m.bound[row.Addr])
	if row.Claim != "" && !slices.Contains(keys, row.Claim) {
		keys = append(keys, row.Claim)
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
	if _, known := m.claims[keys[0]]; !known {
		return "", fmt.Sprintf("it belongs to claim %s, which does not exist", keys[0])
	}
	return keys[0], ""
}
