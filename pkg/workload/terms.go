package workload

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Targets of a term: the whole pod, the interfaces of one network, or one interface. A term of one interface ranks
// before one of one network, and that before one of the whole pod, on any object.
const (
	ofPod uint8 = iota
	ofNetwork
	ofInterface
)

// rank orders statements: the lowest rank counts.
func (s *statement) rank() Level { return s.level << (4 * (ofInterface - s.binds)) }

// isNarrowedBy reports whether a statement may only choose from another one's value of the same field.
func (s *statement) isNarrowedBy(o *statement, f Field) bool {
	return f == fieldSets && s.binds == o.binds
}

// annotationOf returns the annotation with a key, and the name of the interface or network in the key; empty for the
// whole pod.
func annotationOf(key string) (a Annotation, target string, known bool) {
	base := key
	if rest, own := strings.CutPrefix(key, ownPrefix); own {
		name, of, _ := strings.Cut(rest, ".")
		base, target = ownPrefix+name, of
	}
	for _, a := range Annotations() {
		if a.Key == base {
			return a, target, true
		}
	}
	return a, "", false
}

// binding returns how near a term's target is to the requested interface; ok is false for a term of another interface.
func (p Pod) binding(target string) (binds uint8, ok bool) {
	switch target {
	case "":
		return ofPod, true
	case p.interfaceName():
		return ofInterface, true
	case p.Network:
		return ofNetwork, true
	}
	return 0, false
}

// interfaceName returns the requested interface of the pod.
func (p Pod) interfaceName() string { return cmp.Or(p.IfName, lease.DefaultIfName) }

// Scope returns the origin of the interface's addresses.
func (p Pod) Scope() index.Scope {
	return index.Scope{Network: p.Network, Namespace: p.Namespace, Several: p.Several}
}

// terms returns the annotations of one object that apply to the interface of the pod, with their nearness, in the order
// of Annotations, each with its terms of the interface and of the network.
func (p Pod) terms(values map[string]string) (all []term) {
	for _, a := range Annotations() {
		if value := strings.TrimSpace(values[a.Key]); value != "" {
			all = append(all, term{a, a.Key, value, ofPod})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		a, target, known := annotationOf(key)
		value := strings.TrimSpace(values[key])
		if binds, ok := p.binding(target); known && ok && target != "" && value != "" {
			all = append(all, term{a, key, value, binds})
		}
	}
	return all
}

// term is an annotation of an object.
type term struct {
	Annotation
	key, value string
	binds      uint8
}

// Unbound is an annotation that does not apply to an interface, with the reason.
type Unbound struct {
	Source
	Why string
}

const elsewhere = "what it names is of another network"

// bind drops terms of the pod about networks other than the interface's. Without an index it drops nothing. Terms of
// the interface or of its network always apply. It refuses terms for an unknown interface or network.
func (b *policyBuilder) bind(x *index.Index) *ipam.Refusal {
	for f, s := range b.said {
		b.apart = b.apart || s != nil && s.binds != ofPod && ofClaim(Field(f))
	}
	if x == nil {
		return nil
	}
	if refusal := b.place(x); refusal != nil {
		return refusal
	}
	scope := b.pod.Scope()
	if s := b.maybeElsewhere(fieldPool); s != nil {
		if s.pools = x.Pools.PoolsInScope(scope, s.pools); len(s.pools) == 0 {
			b.unbind(fieldPool, elsewhere)
		} else {
			b.apart = b.apart || len(s.pools) < len(b.said[fieldPool].pools)
			b.said[fieldPool] = s
		}
	}
	if s := b.maybeElsewhere(fieldSets); s != nil {
		s.sets = slices.DeleteFunc(slices.Clone(s.sets), func(set *netipx.IPSet) bool {
			return x.Pools.SetElsewhere(scope, set, b.pools())
		})
		if len(s.sets) == 0 {
			b.unbind(fieldSets, elsewhere)
		} else {
			b.said[fieldSets] = s
		}
	}
	if s := b.maybeElsewhere(fieldGateway); s != nil && x.Pools.GatewayElsewhere(scope, s.gateway) {
		b.unbind(fieldGateway, elsewhere)
	}
	if f := b.families(); x.Pools.FamiliesElsewhere(scope, f) {
		for _, field := range []Field{fieldFamilyPolicy, fieldFamilies} {
			if b.maybeElsewhere(field) != nil {
				b.unbind(field, "the network has no addresses of the family")
			}
		}
	}
	b.fitDefaults(x)
	return nil
}

// maybeElsewhere returns a copy of the pod-wide statement of a field, which may be about another interface; nil for
// none. All terms of a pod with one interface apply to that, except for defaults of its namespace.
func (b *policyBuilder) maybeElsewhere(f Field) *statement {
	s := b.said[f]
	if s == nil || s.binds != ofPod || !b.pod.hasSeveral() && !b.isDefault(f) {
		return nil
	}
	c := *s
	return &c
}

// hasSeveral reports whether the pod has more interfaces, by its networks or by the requested interface.
func (p Pod) hasSeveral() bool { return p.Several || p.interfaceName() != lease.DefaultIfName }

// unbind drops the statement of a field, because it is about another interface.
func (b *policyBuilder) unbind(f Field, why string) {
	s := b.said[f]
	b.unbound = append(b.unbound, Unbound{Source{Object: s.object, Key: s.key, Value: s.value, Gave: f.String()}, why})
	b.apart = b.apart || ofClaim(f)
	b.drop(f)
}

// fitDefaults drops defaults of the namespace that contradict the request, the pod or its workload.
func (b *policyBuilder) fitDefaults(x *index.Index) {
	sets := b.said[fieldSets]
	for _, f := range []Field{fieldFamilies, fieldFamilyPolicy} {
		if !b.isDefault(f) {
			continue
		}
		_, agree := b.pod.Asks.Families.With(b.families())
		switch {
		case !agree, b.families().Admit(b.pod.Asks.Addrs) != nil,
			sets != nil && !sets.offers(b.families()),
			b.said[fieldPool] != nil && !b.isDefault(fieldPool) && !x.Pools.PoolsOffer(b.pools(), b.families()):
			b.drop(f)
		}
	}
	if !b.isDefault(fieldPool) {
		return
	}
	switch {
	case sets != nil && !slices.ContainsFunc(sets.sets,
		func(s *netipx.IPSet) bool { return x.Pools.PoolsMeet(b.pools(), s) }),
		!x.Pools.PoolsOffer(b.pools(), b.families()):
		b.drop(fieldPool)
	case len(b.pod.Asks.Addrs) > 0 && !x.Pools.PoolsMeet(b.pools(), b.pod.Asks.set()):
		b.unbind(fieldPool, "the request names an address of another pool")
	}
}

// ofClaim reports whether a field affects the policy's claim.
func ofClaim(f Field) bool {
	return f == fieldSets || f == fieldPool || f == fieldRelease || f == fieldKeep || f == fieldClaim ||
		f == fieldShared
}
