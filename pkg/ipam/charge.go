package ipam

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// charge is a namespace that an address of a pool counts for.
type charge struct{ pool, namespace string }

// charges are those of one address: by its entry, by what is missing, and by the request that it is being given to.
type charges struct {
	n  int
	of [6]charge
}

func (c *charges) add(pool string, by lease.ChargedNamespaces) {
	for _, ns := range by {
		if at := (charge{pool, ns}); ns != "" && !c.has(at) {
			c.of[c.n] = at
			c.n++
		}
	}
}

func (c *charges) addRecord(r *record, countedAs func(pool string) string) {
	if r != nil {
		c.add(countedAs(r.params.Value().Pool), lease.Charged(r.state, r.namespace.Value(), r.claim()))
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
