package memory

import "github.com/bcsnet/bcsnet/pkg/ipam"

// Standing returns how a pool stands to the namespace of a request.
func (x *Catalogue) Standing(p *PoolState, w ipam.PickRequest) ipam.Standing {
	_, named := p.Namespaces[w.Namespace]
	switch {
	case p.Block:
		return ipam.OwnBlock
	case p.Bound() && !p.boundTo(w.Namespace):
		return ipam.BoundElsewhere
	case !p.Bound() && p.NotDefault:
		return ipam.OnlyByName
	case !p.Lists(w):
		return ipam.NotOnHost
	case named:
		return ipam.BoundByName
	case p.Bound():
		return ipam.BoundByLabels
	case p.Split != nil && x.ServesNamespace(p, w) && (p.AutoAssign || len(p.Split.Owns(w.Namespace)) > 0):
		return ipam.SplitIntoBlocks
	case p.Split != nil && !p.AutoAssign && len(p.Split.Owns(w.Namespace)) == 0:
		return ipam.GivesNoBlock
	case x.HasOwn(w):
		return ipam.BehindItsOwn
	default:
		return ipam.InDefaultChain
	}
}
