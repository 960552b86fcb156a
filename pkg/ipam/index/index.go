package index

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
	"github.com/bcsnet/bcsnet/pkg/ipam/pick"
)

// Index is the memory of the allocator: every address that has an object, every pool, and which addresses are free. It
// is fed from the watch and from the writes of this process, and can be rebuilt from the objects at any time. Its own
// methods choose addresses for requests. Feed takes input, and Leases and Pools answer questions.
type Index struct {
	Feed   *Feed
	Leases *Leases
	Pools  *Pools

	core *core
}

// core is the state of the index, with the one lock that guards all of it. The exported methods of Index, Feed, Leases
// and Pools take the lock: for reading if they change nothing, not even cooldowns that have ended. Nothing that they
// call takes the lock.
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
