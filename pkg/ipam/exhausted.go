package ipam

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many pools a message spells out.
const maxNamed = 5

// exhausted says why none of the pools that fit gave an address, with their counts.
func (x *Index) exhausted(w Want, fit []*poolState) *Refusal {
	var counts []string
	for _, p := range fit[:min(len(fit), maxNamed)] {
		counts = append(counts, x.counts(p))
	}
	if n := len(fit) - maxNamed; n > 0 {
		counts = append(counts, fmt.Sprintf("and %d more pools", n))
	}
	message := fmt.Sprintf("no available IP for %s: %s", w.Who, strings.Join(counts, "; "))
	if !slices.ContainsFunc(fit, func(p *poolState) bool { return p.Serves() }) {
		return Refuse(ReasonPoolCordoned, "%s", message).WithHint("see: bcsnetctl pool describe %s", fit[0].Name)
	}
	return Refuse(ReasonPoolExhausted, "%s", message).
		WithHint("see who holds them: bcsnetctl lease list --pool %s; add addresses: bcsnetctl pool add-ip %s RANGE", fit[0].Name, fit[0].Name)
}

func (x *Index) counts(p *poolState) string {
	if !p.Serves() {
		return fmt.Sprintf("pool %s is %s", p.Name, p.why())
	}
	var active, reserved int
	if m := x.byPool[p.Name]; m != nil {
		active, reserved = m.active, m.reserved
	}
	return fmt.Sprintf("pool %s (%s) has %d of %d addresses free, %d active, %d reserved",
		p.Name, p.Plan.Subnet, p.set.free(), p.set.n, active, reserved)
}

// why says what keeps a pool from handing out addresses.
func (p *poolState) why() string {
	switch {
	case p.Terminating:
		return "being deleted"
	case p.Cordoned:
		return "cordoned"
	default:
		return "not usable: " + p.Problem
	}
}

func poolNames(pools []*poolState) string {
	var names []string
	for _, p := range pools[:min(len(pools), maxNamed)] {
		names = append(names, p.Name)
	}
	if n := len(pools) - maxNamed; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return "pool " + strings.Join(names, ", ")
}
