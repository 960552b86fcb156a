package lease

import (
	"slices"
	"strings"
)

// ChargedNamespaces are up to two namespaces that an address counts for, the empty string standing for none.
type ChargedNamespaces [2]string

// Charged returns the namespaces that an address counts for, by its state, the namespace of its holder, or of the one
// that had it before it was kept, and its claim.
func Charged(s State, namespace, claim string) (p ChargedNamespaces) {
	if s == Active || s == Reserved && claim != "" {
		p[0] = namespace
	}
	if s != Available {
		p[1] = ClaimNamespace(claim)
	}
	return p
}

// ClaimNamespace returns the namespace of a claim that is called namespace/name; empty for none.
func ClaimNamespace(claim string) string {
	namespace, _, _ := strings.Cut(claim, "/")
	return namespace
}

// ChargedTo returns the namespaces that an address counts for: that of the pod or owner that has it, or had it before
// it was kept, and that of the claim that it belongs to. Where both are one it is named once. An address that is free,
// or set aside by hand, counts for none.
func (l Lease) ChargedTo() []string {
	return Charged(l.State, l.Namespace, l.Claim).Distinct()
}

// Distinct returns each of the namespaces once.
func (p ChargedNamespaces) Distinct() (all []string) {
	for _, ns := range p {
		if ns != "" && !slices.Contains(all, ns) {
			all = append(all, ns)
		}
	}
	return all
}
