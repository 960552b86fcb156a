package ipam

import "github.com/bcsnet/bcsnet/pkg/explain"

// Standing says whether a pool serves requests of a namespace that name neither a pool nor a network, and why.
type Standing string

// Standings of pools that are tried.
const (
	// BoundByName and BoundByLabels: the pool is bound to the namespace.
	BoundByName   Standing = "BoundByName"
	BoundByLabels Standing = "BoundByLabels"
	// InDefaultChain: the namespace has nothing of its own, and the pool is for such namespaces.
	InDefaultChain Standing = "InDefaultChain"
	// BesideItsOwn: the pool is in the default chain, and the namespace draws from it on hosts for which it has nothing
	// of its own.
	BesideItsOwn Standing = "BesideItsOwn"
	// OwnBlock: the pool is a block of the namespace.
	OwnBlock Standing = "OwnBlock"
	// SplitIntoBlocks: the pool allocates nothing itself; the namespace has blocks of it, or could get one by itself.
	SplitIntoBlocks Standing = "SplitIntoBlocks"
	// GivesNoBlock: the pool assigns no block automatically, and the namespace has none of it. The namespace's
	// requests end at this pool, unless the namespace has a pool or block of its own.
	GivesNoBlock Standing = "GivesNoBlock"
)

// Standings of pools that are passed over.
const (
	// BoundElsewhere: the pool is bound to other namespaces, or its selector matches none.
	BoundElsewhere Standing = "BoundElsewhere"
	// OnlyByName: the pool is bound to no namespace and left out of the default chain.
	OnlyByName Standing = "OnlyByName"
	// BehindItsOwn: the pool is in the default chain, and the namespace has something of its own.
	BehindItsOwn Standing = "BehindItsOwn"
	// NotOnHost: no host may draw from the pool, or not the one in question.
	NotOnHost Standing = "NotOnHost"
)

// Place is a pool in the chain of a namespace, with its standing.
type Place struct {
	Pool     string
	Standing Standing
	// Tried means that requests of the namespace try the pool.
	Tried bool
	// Stop is why the pool allocates nothing at present, tried or not.
	Stop explain.Stop
}
