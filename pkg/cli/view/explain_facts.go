package view

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Facts returns the facts that decide on a pod's addresses, and the result. next are the next steps if an address is
// missing.
func (e *Explanation) Facts(s *app.App) (f Facts, next Steps) {
	e.podFacts(s, &f)
	if e.has { // otherwise it is the reason for having none
		f.wrong(s, e.wrong)
	}
	e.ignoredFacts(&f)
	name := e.policy.Claim
	if e.has {
		name = e.Addresses[0].Claim
	}
	e.claimFact(&f, name)
	if c := e.claims[name]; c != nil {
		f.add("", "it may have %s", resource.SizeText(c))
	}
	if e.host.IsValid() {
		f.add("Host", "%s", e.host)
	}
	for _, l := range e.Addresses {
		what := "which it would get now"
		if e.has {
			what = "which it has"
		}
		if len(e.interfaces) > 1 {
			what += " for interface " + l.IfName
		}
		f.add("Address", "%s/%d of pool %s, %s", l.Addr, l.Bits, l.Pool, what)
		for i, why := range e.because(l) {
			f.add([]string{"Because", ""}[min(i, 1)], "%s", why)
		}
	}
	none := func(what string, why *ipam.Refusal) {
		f.add("Address", "%s", what)
		text, hint := s.Texts(why)
		f.add("Because", "%s", text)
		if hint != "" {
			next.hint(hint)
		}
	}
	if len(e.Addresses) == 0 && e.none != nil {
		none("none", e.none)
	}
	for _, i := range e.interfaces {
		if i.none != nil {
			none("none for interface "+i.ifName, i.none)
		}
	}
	return f, next
}

// because lists the reasons for an address. The deciding one comes first.
func (e *Explanation) because(l lease.Lease) (out []string) {
	p := e.policyOf(l)
	for _, set := range p.Sets {
		if set.Contains(l.Addr) {
			out = append(out, "it is one of "+ipaddr.FormatSet(set)+", which "+claim.Source(p, "Sets")+" asks for")
		}
	}
	if h := l.Other; h != nil {
		out = append(out,
			"its virtual machine "+resource.MigrationText(l)+", and both pods have the address until one ends")
	}
	switch c := e.claims[l.Claim]; {
	case l.Claim == "":
	case e.keeps[l.Addr] && l.Other == nil:
		out = append(out, resource.RetainedText(l))
	default:
		text := "claim " + l.Claim + map[bool]string{true: " has it", false: " takes it"}[e.has]
		if l.PodPrimaryKey != "" {
			text += " for " + l.PodPrimaryKey
		}
		out = append(out, text)
		if c != nil && len(c.Spec.Addresses) > 0 {
			out = append(out, "the claim is for "+humanize.List(c.Spec.Addresses))
		}
	}
	pool := e.pools[l.Pool]
	switch c := e.claims[l.Claim]; {
	case slices.Contains(p.Pools, l.Pool):
		out = append(out, "pool "+l.Pool+" is the one that "+claim.Source(p, "Pool")+" asks for")
	case c != nil && slices.Contains(c.Spec.PoolNames(), l.Pool):
		out = append(out, "pool "+l.Pool+" is the pool of the claim")
	case pool != nil && e.boundTo(pool):
		out = append(out, "pool "+l.Pool+" is bound to namespace "+e.key.Namespace)
	case pool != nil && l.Claim != "" && (e.has || e.keeps[l.Addr]):
		out = append(out, fmt.Sprintf("pool %s serves host %s", l.Pool, resource.AddrText(e.host)))
	case pool != nil:
		out = append(
			out, fmt.Sprintf(
				"pool %s serves host %s, and of the pools that do it is the first with a free address, by priority "+
					"and name",
				l.Pool, resource.AddrText(e.host)))
	}
	return out
}

// boundTo reports whether a pool is bound to the pod's namespace.
func (e *Explanation) boundTo(pool *v1.BCSNetPool) bool {
	x := index.New()
	x.Pools.SetNamespace(e.key.Namespace, e.labels)
	x.Pools.SetPool(store.Pool(pool))
	if parent := e.pools[pool.Spec.Parent]; parent != nil && parent.Spec.BlockSize == 0 {
		x.Pools.SetPool(store.Pool(parent)) // a group without namespaces inherits these
	}
	p, _ := x.Pools.Get(pool.Name)
	return p.Bound() && x.Pools.ServesNamespace(p.Name, e.key.Namespace)
}

// Object returns the explanation with its lineage for -o json and similar formats.
func (e *Explanation) Object() *unstructured.Unstructured {
	o := e.Lineage.Object("Explanation")
	o.Object["host"] = resource.AddrText(e.host)
	outcome := "wouldGet"
	switch {
	case e.has:
		outcome = "has"
	case len(e.Addresses) == 0:
		outcome = "none"
		if e.none == nil {
			e.none = e.interfaces[0].none
		}
		o.Object["reason"], o.Object["message"], o.Object["hint"] = string(e.none.Reason), e.none.Message, e.none.Hint
	}
	o.Object["outcome"] = outcome
	answers := []any{}
	for _, l := range e.Addresses {
		because := []any{}
		for _, why := range e.because(l) {
			because = append(because, why)
		}
		answers = append(answers, map[string]any{
			"address": l.Addr.String(), "interface": l.IfName,
			"pool": l.Pool, "claim": l.Claim, "because": because, "migration": l.Other != nil,
		})
	}
	o.Object["answers"] = answers
	return o
}
