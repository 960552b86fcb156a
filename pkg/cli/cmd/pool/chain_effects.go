package pool

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// chainEffects describes who enters and leaves the default chain by a change of a pool.
type chainEffects struct {
	pool string
	// leave are the namespaces that get something of their own, join those that would have nothing of their own any more.
	leave, join []string
	// poolLeaves and poolJoins: the pool itself is in the default chain no more, or from now on. onlyByName: it serves
	// only who names it.
	poolLeaves, poolJoins, onlyByName bool
	// cutOff are the namespaces that the pool serves no more and that have addresses of it, with how many.
	cutOff []namespaceShare
}

type namespaceShare struct {
	namespace string
	held      int
}

// sameChains reports whether two states of a pool mean the same to the chains of all namespaces, whatever labels these
// have: both are for the same ones, and both give them blocks by themselves or neither does.
func sameChains(a, b ipam.Pool) bool {
	grows := func(p ipam.Pool) bool { return p.BlockSize > 0 && p.AutoAssign }
	text := func(p ipam.Pool) string {
		if p.NamespaceSelector == nil {
			return ""
		}
		return p.NamespaceSelector.String()
	}
	return a.NotDefault == b.NotDefault && grows(a) == grows(b) && text(a) == text(b) &&
		maps.EqualFunc(a.Namespaces, b.Namespaces, func(struct{}, struct{}) bool { return true })
}

// chainEffectsOf compares the chains of namespaces before and after a change of a pool. before has no name for a pool
// that is new; labels are those of the namespaces that exist, leases those of the pool that are not free.
func chainEffectsOf(
	before, after ipam.Pool, others []ipam.Pool, labels map[string]map[string]string, leases []lease.Lease,
) chainEffects {
	e := chainEffects{pool: after.Name, onlyByName: !after.Bound() && after.NotDefault}
	if before.Name != "" {
		e.poolLeaves = before.InDefaultChain() && !after.InDefaultChain()
		e.poolJoins = !before.InDefaultChain() && after.InDefaultChain()
	}
	was, is := ipam.NewIndex(), ipam.NewIndex()
	names := map[string]bool{}
	for _, x := range []*ipam.Index{was, is} {
		for ns, of := range labels {
			x.SetNamespace(ns, of)
			names[ns] = true
		}
		for _, p := range others {
			x.SetPool(p)
		}
	}
	if before.Name != "" {
		was.SetPool(before)
	}
	is.SetPool(after)
	for _, p := range []ipam.Pool{before, after} {
		for ns := range p.Namespaces {
			names[ns] = true
		}
	}
	var anyHost netip.Addr
	for _, ns := range slices.Sorted(maps.Keys(names)) {
		switch had, has := len(was.Own(ns, anyHost)) > 0, len(is.Own(ns, anyHost)) > 0; {
		case has && !had:
			e.leave = append(e.leave, ns)
		case had && !has:
			e.join = append(e.join, ns)
		}
	}
	held := map[string]int{}
	for _, l := range leases {
		if l.State == lease.Active && l.Namespace != "" {
			held[l.Namespace]++
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(held)) {
		if was.ServesNamespace(after.Name, ns) && !is.ServesNamespace(after.Name, ns) {
			e.cutOff = append(e.cutOff, namespaceShare{ns, held[ns]})
		}
	}
	return e
}

// say puts the effects into words.
func (e chainEffects) say() (out []effect) {
	add := func(grave bool, format string, args ...any) {
		out = append(out, effect{fmt.Sprintf(format, args...), grave})
	}
	switch {
	case e.poolJoins:
		add(true, "pool %s joins the default chain: it serves every namespace that has nothing of its own", e.pool)
	case e.poolLeaves && e.onlyByName:
		add(false, "pool %s leaves the default chain: it serves only who names it", e.pool)
	case e.poolLeaves:
		add(false, "pool %s leaves the default chain: it serves the namespaces that are bound to it alone", e.pool)
	}
	if n := len(e.leave); n > 0 {
		add(false, "%s %s %s the default chain: %s", humanize.OneOr(n, "namespace", "namespaces"), humanize.List(e.leave),
			humanize.OneOr(n, "leaves", "leave"), humanize.OneOr(n, "it draws from its own alone",
				"they draw from their own alone"))
	}
	if n := len(e.join); n > 0 {
		add(false, "%s %s %s the default chain: %s", humanize.OneOr(n, "namespace", "namespaces"), humanize.List(e.join),
			humanize.OneOr(n, "joins", "join"), humanize.OneOr(n, "it has nothing of its own", "they have nothing of their own"))
	}
	if len(e.cutOff) > 0 {
		total := 0
		var names []string
		for _, n := range e.cutOff {
			total += n.held
			names = append(names, fmt.Sprintf("%s (%d)", n.namespace, n.held))
		}
		add(false, "%s in use by namespaces that pool %s serves no more %s until %s: %s", humanize.Plural(total, "address"),
			e.pool, humanize.OneOr(total, "stays", "stay"), humanize.OneOr(total, "its pod ends", "their pods end"),
			humanize.List(names))
	}
	return out
}

// labelsOfNamespaces reads the labels of all namespaces; none for who may not list them, who is told.
func labelsOfNamespaces(ctx context.Context, s *app.App) (map[string]map[string]string, error) {
	all, err := resource.ListNamespaces(ctx, s)
	switch {
	case apierrors.IsForbidden(err):
		s.Say.Warn("you may not list namespaces: which of them the change concerns is known only of those that pools name")
		return nil, nil
	case err != nil:
		return nil, resource.Explain(s, err)
	}
	labels := make(map[string]map[string]string, len(all))
	for _, n := range all {
		labels[n.GetName()] = n.GetLabels()
	}
	return labels, nil
}
