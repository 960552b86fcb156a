package index

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
	"github.com/bcsnet/bcsnet/pkg/ipam/pick"
)

// Index is the memory of the allocator: every address that has an object, every pool, and which addresses are free. It
// is fed from the watch of the objects and from the writes of this process, and is nothing but their digest: it is
// rebuilt from the objects at any time. Its own methods choose addresses for requests. What it is fed with, and what it
// is asked about, are its parts.
type Index struct {
	Feed   *Feed
	Leases *Leases
	Pools  *Pools

	core *core
}

// core is what the index knows, with the one lock that guards all of it. The exported methods of Index and of its parts
// take the lock; nothing below them does, and nothing below them calls an exported method.
type core struct {
	mu     sync.RWMutex
	state  *memory.State
	picker pick.Picker
}

// New makes an empty index.
func New() *Index {
	s := memory.NewState()
	c := &core{state: s, picker: pick.New(s)}
	return &Index{Feed: &Feed{core: c}, Leases: &Leases{c}, Pools: &Pools{c}, core: c}
}
