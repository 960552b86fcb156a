package ipam

import (
	"cmp"
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

// add adds the charges of an address of a pool, each once.
func (c *charges) add(pool string, by lease.ChargedNamespaces) {
	for _, ns := range by {
		if at := (charge{pool, ns}); ns != "" && !c.has(at) {
			c.of[c.n] = at
			c.n++
		}
	}
}

// addRecord adds those of an entry, nil for none.
func (c *charges) addRecord(r *record, countedAs func(pool string) string) {
	if r != nil {
		c.add(countedAs(r.params.Value().Pool), lease.Charged(r.state, r.namespace.Value(), r.claim()))
	}
}

// has reports whether an address counts for a namespace.
func (c *charges) has(at charge) bool { return slices.Contains(c.of[:c.n], at) }

// namespaceUsage counts addresses by pool and namespace. charged are those that count for the namespace, those missing
// and those being given included. kept are those that a claim keeps and nobody uses, by the namespace of the pod that
// had them last. There is no count of nothing.
type namespaceUsage struct {
	charged map[string]map[string]int
	kept    map[charge]int
}

// keep counts an address if a claim keeps it and nobody uses it.
func (x *namespaceUsage) keep(r *record, countedAs func(pool string) string, by int) {
	if r == nil || r.state != lease.Reserved || r.claim() == "" {
		return
	}
	at := charge{countedAs(r.params.Value().Pool), cmp.Or(r.namespace.Value(), lease.ClaimNamespace(r.claim()))}
	if x.kept[at] += by; x.kept[at] == 0 {
		delete(x.kept, at)
	}
}

// charge counts an address for a namespace of a pool.
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
