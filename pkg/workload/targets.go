package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// otherTerm is a term for an interface or network other than the requested one.
type otherTerm struct {
	Source
	target string
	level  Level
}

// otherTerms returns the terms of one object for other interfaces and networks.
func (p Pod) otherTerms(level Level, object string, values map[string]string) (all []otherTerm) {
	for key, value := range values {
		a, target, known := annotationOf(key)
		if !known || a.On&level == 0 || strings.TrimSpace(value) == "" {
			continue
		}
		if _, binds := p.binding(target); !binds {
			from := Source{Object: object, Key: key, Value: strings.TrimSpace(value), Gave: a.Field.String()}
			all = append(all, otherTerm{from, target, level})
		}
	}
	slices.SortFunc(all, func(x, y otherTerm) int { return strings.Compare(x.Key, y.Key) })
	return all
}

// place finds the target of each other term: an interface of the pod, or a network of pools. A term without a target is
// mistyped: it is refused if the interfaces of the pod are known, and reported as ignored otherwise. A default of the
// namespace may be for other pods.
func (b *policyBuilder) place(x *index.Index) *ipam.Refusal {
	for _, o := range b.others {
		has, may := b.pod.mayHave(o.target)
		switch {
		case has:
			b.unbound = append(b.unbound, Unbound{o.Source, "it is for interface " + o.target})
		case x.Pools.HasNetwork(o.target):
			b.unbound = append(b.unbound, Unbound{o.Source, "it is for network " + o.target})
		case o.level == OnNamespace:
			b.unbound = append(b.unbound, Unbound{o.Source, noTarget(o.target)})
		case may:
			b.ignored = append(b.ignored, Ignored{Object: o.Object, Key: o.Key, Known: true, Target: o.target})
		default:
			return ipam.Refuse(ipam.ReasonInvalidAnnotation, "annotation %s=%q of %s: %s", o.Key, clip(o.Value),
				o.Object, noTarget(o.target)).
				WithHint("name one of the pod's interfaces, %s, or the spec.network of a pool: bcsnetctl pool list "+
					"-o wide", b.pod.interfaceNames())
		}
	}
	return nil
}

func noTarget(target string) string {
	return fmt.Sprintf("no interface of the pod is known to be called %s, and no pool is of a network of that name",
		target)
}

// interfaceNames lists the known interfaces of a pod.
func (p Pod) interfaceNames() string {
	names := map[string]bool{lease.DefaultIfName: true, p.interfaceName(): true}
	for _, i := range p.Interfaces {
		names[i.IfName] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}
