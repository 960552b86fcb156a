package block

import (
	"iter"
	"maps"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/freeset"
)

// Member has the methods that a split needs of an existing block.
type Member interface {
	comparable
	// Number returns the number of the block in the grid.
	Number() uint64
	// Owner returns the namespace that the block belongs to.
	Owner() string
	// Rank returns the priority that the block has itself; 0 for none.
	Rank() int32
	// Size returns how many addresses of the block its pool serves.
	Size() uint64
}

// Split is what a pool that is cut into blocks knows of them: which exist, who owns them, and who has addresses in
// them. A number that is not taken can be given to any namespace. It has no lock: its pool's owner has one.
type Split[B Member] struct {
	Grid
	// taken has the numbers of the blocks that cannot be given to everybody: that exist, in which somebody has an
	// address, or that have no usable one.
	taken *freeset.Set
	// blocks are those that exist, by number; of has them by their namespace, in the order in which it draws from them.
	blocks map[uint64]B
	of     map[string][]B
	// held counts the addresses that somebody has, or is being given, by block and namespace; heldBy has the blocks of
	// a namespace.
	held   map[uint64]map[string]int
	heldBy map[string]map[uint64]struct{}
	// void has the blocks without any address that the pool serves.
	void *freeset.Set
	// owned is the number of addresses of the blocks that exist.
	owned uint64
}

// NewSplit returns a split in which no block exists.
func NewSplit[B Member](g Grid) *Split[B] {
	return &Split[B]{
		Grid: g, taken: freeset.New(g.n), void: freeset.New(g.n), blocks: map[uint64]B{}, of: map[string][]B{},
		held: map[uint64]map[string]int{}, heldBy: map[string]map[uint64]struct{}{},
	}
}

// Enter adds a block that exists.
func (s *Split[B]) Enter(b B) {
	s.blocks[b.Number()] = b
	s.list(b)
	s.owned += b.Size()
	s.mark(b.Number())
}

// Leave takes a block out.
func (s *Split[B]) Leave(b B) {
	delete(s.blocks, b.Number())
	s.unlist(b)
	s.owned -= b.Size()
	s.mark(b.Number())
}

// Existing returns the block of a number; ok is false if nobody has made it.
func (s *Split[B]) Existing(number uint64) (b B, ok bool) {
	b, ok = s.blocks[number]
	return b, ok
}

// All returns the blocks that exist, with their numbers, in no order.
func (s *Split[B]) All() iter.Seq2[uint64, B] { return maps.All(s.blocks) }

// Hold counts an address that a namespace has in a block.
func (s *Split[B]) Hold(number uint64, namespace string, by int) {
	in := s.held[number]
	if in == nil {
		in = map[string]int{}
		s.held[number] = in
	}
	if s.heldBy[namespace] == nil {
		s.heldBy[namespace] = map[uint64]struct{}{}
	}
	s.heldBy[namespace][number] = struct{}{}
	if in[namespace] += by; in[namespace] == 0 {
		if delete(in, namespace); len(in) == 0 {
			delete(s.held, number)
		}
		if delete(s.heldBy[namespace], number); len(s.heldBy[namespace]) == 0 {
			delete(s.heldBy, namespace)
		}
	}
	s.mark(number)
}

// HeldIn counts the addresses that somebody has, or is being given, of a block, by namespace. Do not change it.
func (s *Split[B]) HeldIn(number uint64) map[string]int { return s.held[number] }

// IsVoid reports whether the pool serves no address of a block.
func (s *Split[B]) IsVoid(number uint64) bool { return s.void.IsTaken(number) }

// mark brings the free set up to date with a block.
func (s *Split[B]) mark(number uint64) {
	_, exists := s.blocks[number]
	s.taken.Mark(number, exists || len(s.held[number]) > 0 || s.void.IsTaken(number))
}

// Reset begins again after it was worked out what the pool serves: parts, in address order. The blocks that exist have
// their new sizes already, and nobody has an address: who has one is counted anew.
func (s *Split[B]) Reset(parts iter.Seq[netipx.IPRange]) {
	s.taken, s.void, s.owned = freeset.New(s.n), freeset.New(s.n), 0
	clear(s.held)
	clear(s.heldBy)
	var next uint64 // the lowest number that is not looked at yet
	skip := func(to uint64) {
		for ; next < to; next++ {
			s.taken.Mark(next, true)
			s.void.Mark(next, true)
		}
	}
	for part := range parts {
		from, _ := s.NumberOf(part.From())
		to, _ := s.NumberOf(part.To())
		skip(from)
		next = max(next, to+1)
	}
	skip(s.n)
	for number, b := range s.blocks {
		s.owned += b.Size()
		s.taken.Mark(number, true)
	}
}

// OwnedAddresses returns how many addresses the blocks have that exist.
func (s *Split[B]) OwnedAddresses() uint64 { return s.owned }

// Counts are the blocks of a pool that is split. A block is in one of the other counts.
type Counts struct {
	// All is their number; Owned of them exist, Held are owned by nobody and have addresses that somebody has,
	// Void have no address that the pool serves, Free can be given to any namespace.
	All, Owned, Held, Void, Free int
}

// Counts counts the blocks.
func (s *Split[B]) Counts() Counts {
	c := Counts{All: int(s.n), Owned: len(s.blocks), Free: int(s.taken.Free()), Void: int(s.void.Used())}
	for number := range s.blocks {
		if s.void.IsTaken(number) {
			c.Void--
		}
	}
	c.Held = c.All - c.Owned - c.Free - c.Void
	return c
}
