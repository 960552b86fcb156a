package ipam

import (
	"slices"
	"strings"
)

// ClaimNamespace returns the namespace of a claim that is called namespace/name; empty for none.
func ClaimNamespace(claim string) string {
	namespace, _, _ := strings.Cut(claim, "/")
	return namespace
}

// ChargedTo returns the namespaces that an address counts for: that of the pod or owner that has it, and that of the
// claim that it belongs to. Where both are one it is named once. An address that is free, or set aside by hand, counts
// for none.
func (l Lease) ChargedTo() []string {
	c := chargedTo(l.State, l.Namespace, l.Claim)
	return c.list()
}

// ChargedNamespaces are up to two namespaces that an address counts for, the empty string standing for none.
type ChargedNamespaces [2]string

func chargedTo(s State, namespace, claim string) (p ChargedNamespaces) {
	if s == Active {
		p[0] = namespace
	}
	if s != Available {
		p[1] = ClaimNamespace(claim)
	}
	return p
}

func (p ChargedNamespaces) list() (all []string) {
	for _, ns := range p {
		if ns != "" && !slices.Contains(all, ns) {
			all = append(all, ns)
		}
	}
	return all
}

// charge is a namespace that an address of a pool counts for.
type charge struct{ pool, namespace string }

// charges are those of one address: by its entry, by what is missing, and by the request that it is being given to.
type charges struct {
	n  int
	of [6]charge
}

func (c *charges) add(pool string, by ChargedNamespaces) {
	for _, ns := range by {
		if at := (charge{pool, ns}); ns != "" && !c.has(at) {
			c.of[c.n] = at
			c.n++
		}
	}
}

func (c *charges) addRecord(r *record) {
	if r != nil {
		c.add(r.params.Value().Pool, chargedTo(r.state, r.namespace.Value(), r.claim()))
	}
}

func (c *charges) has(at charge) bool { return slices.Contains(c.of[:c.n], at) }

// namespaceUsage counts, by pool and namespace, the addresses that count for namespaces, those missing and those being
// given included; none that counts for nothing.
type namespaceUsage struct{ charged map[string]map[string]int }

func (x *namespaceUsage) charge(at charge, by int) {
	of := x.charged[at.pool]
	if of == nil {
		of = map[string]int{}
		x.charged[at.pool] = of
	}
	if of[at.namespace] += by; of[at.namespace] == 0 {
		if delete(of, at.namespace); len(of) == 0 {
			delete(x.charged, at.pool)
		}
	}
}
