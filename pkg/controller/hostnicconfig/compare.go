package hostnicconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/compat/hostnic"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// compare records statements of the document that do not match the pools. Pools belong to the operator and are not
// changed.
func (p *pass) compare(m hostnic.Mapping) {
	for _, name := range m.Defaults {
		if problem := p.defaultProblem(name); problem != "" {
			p.differs("%s names %s, %s", hostnic.Default, hostnic.Clip(name), problem)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(p.parents)) {
		if o, known := p.Index.Pools.Get(parent); known && o.AutoAssign != m.AutoAssign {
			p.differs("%s is %s, and pool %s has autoAssign: %t, which counts", hostnic.AutoAssignKey,
				onOff(m.AutoAssign), parent, o.AutoAssign)
		}
	}
}

// defaultProblem returns the reason why namespaces that the document does not name cannot draw from one of its default
// pools; empty if they can.
func (p *pass) defaultProblem(name string) string {
	o, ok := p.Index.Pools.Get(name)
	switch {
	case !ok:
		return "and there is no such pool"
	case !o.Valid():
		return "which cannot be used: " + o.Problem
	case o.Block:
		return "a block, from which only its namespace draws"
	case o.BlockSize > 0 && !o.AutoAssign:
		return "which is split into blocks and assigns none automatically"
	case !o.InDefaultChain():
		return "which is not in the default chain: " + outside(o)
	}
	return ""
}

// outside returns the reason why a pool is not in the default chain.
func outside(o ipam.Pool) string {
	if o.NotDefault {
		return "it says default: false"
	}
	return fmt.Sprintf("it is bound to namespaces (%d by name)", len(o.Namespaces))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
