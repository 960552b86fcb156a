package ledger

import (
	"cmp"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Charge is a namespace that an address of a pool counts for.
type Charge struct{ Pool, Namespace string }

// Charges are the charges of one address: those of its entry, of the missing entry, and of the request that it is being
// given to.
type Charges struct {
	N  int
	Of [6]Charge
}

// Add adds the charges of an address of a pool, each once.
func (c *Charges) Add(pool string, by lease.ChargedNamespaces) {
	for _, ns := range by {
		if at := (Charge{pool, ns}); ns != "" && !c.Has(at) {
			c.Of[c.N] = at
			c.N++
		}
	}
}

// AddRecord adds those of an entry, nil for none.
func (c *Charges) AddRecord(r *Record, countedAs func(pool string) string) {
	if r != nil {
		c.Add(countedAs(r.Params.Value().Pool), lease.Charged(r.State, r.Namespace.Value(), r.Claim()))
	}
}

// Has reports whether an address counts for a namespace.
func (c *Charges) Has(at Charge) bool { return slices.Contains(c.Of[:c.N], at) }

// NamespaceUsage counts addresses by pool and namespace. No count is 0.
type NamespaceUsage struct {
	// Charged counts the addresses that count for a namespace, by pool and namespace. Those that are missing, and those
	// that are being given, count too.
	Charged map[string]map[string]int
	// Kept counts the addresses that a claim keeps and nobody uses, by the namespace of the pod that had them last.
	Kept map[Charge]int
}

// Keep counts an address if a claim keeps it and nobody uses it.
func (x *NamespaceUsage) Keep(r *Record, countedAs func(pool string) string, by int) {
	if r == nil || r.State != lease.Reserved || r.Claim() == "" {
		return
	}
	at := Charge{countedAs(r.Params.Value().Pool), cmp.Or(r.Namespace.Value(), lease.ClaimNamespace(r.Claim()))}
	if x.Kept[at] += by; x.Kept[at] == 0 {
		delete(x.Kept, at)
	}
}

// Add counts an address for a namespace of a pool.
func (x *NamespaceUsage) Add(at Charge, by int) {
	of := x.Charged[at.Pool]
	if of == nil {
		of = map[string]int{}
		x.Charged[at.Pool] = of
	}
	if of[at.Namespace] += by; of[at.Namespace] == 0 {
		if delete(of, at.Namespace); len(of) == 0 {
			delete(x.Charged, at.Pool)
		}
	}
}
