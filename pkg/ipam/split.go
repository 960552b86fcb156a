package ipam

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// split is what a pool that is cut into blocks knows of them. A block exists while a namespace owns it. It has no
// addresses of its own: they are a run of the numbers of its parent's free set, so that a block comes and goes without
// a look at any other pool, and the counts of the parent are those of all.
type split struct {
	grid
	// taken has the numbers of the blocks that cannot be given to everybody: that exist, in which somebody has an
	// address, or that have no usable one.
	taken *freeSet
	// blocks are those that exist, by number; of has them by their namespace, in the order in which it draws from them.
	blocks map[uint64]*poolState
	of     map[string][]*poolState
	// held counts the addresses that somebody has, or is being given, by block and namespace; heldBy has the blocks of
	// a namespace.
	held   map[uint64]map[string]int
	heldBy map[string]map[uint64]struct{}
	// void has the blocks without any address that the pool serves.
	void *freeSet
	// owned is how many addresses the blocks have that exist; members counts the leases that name one of them.
	owned   uint64
	members tally
}

// tally counts what members have.
type tally struct{ objects, active, reserved, retained, draining int }

func (t *tally) add(m *members, by int) {
	t.objects += by * len(m.records)
	t.active += by * m.active
	t.reserved += by * m.reserved
	t.retained += by * m.retained
	t.draining += by * len(m.draining)
}

// SplitLate reports whether a pool has been split that handed out addresses itself before, and whose blocks nobody may
// have yet: a replica that has not heard of the split could give an address to another namespace than the one that is
// given its block. Once a pool was made with blocks, or no request can be under way that takes it for a whole one, its
// status says so (Carved). A pool that is changed before its first status waits once without need.
func (p Pool) SplitLate() bool { return p.BlockSize > 0 && p.Generation > 1 && p.Carved == nil }

func newSplit(g grid) *split {
	return &split{
		grid: g, taken: newFreeSet(g.n), void: newFreeSet(g.n), blocks: map[uint64]*poolState{},
		of:   map[string][]*poolState{},
		held: map[uint64]map[string]int{}, heldBy: map[string]map[uint64]struct{}{},
	}
}

// start returns the number at which the blocks of a namespace begin: every replica tries the same ones, and a namespace
// that comes again gets its old block, if that is free.
func (s *split) start(namespace string) uint64 {
	if s.n == 0 {
		return 0
	}
	return xxhash.Sum64String(namespace) % s.n
}

// away returns how far a block is behind the one at which a namespace begins.
func (s *split) away(number uint64, namespace string) uint64 {
	return (number + s.n - s.start(namespace)) % s.n
}

// enter adds a block that exists.
func (s *split) enter(b *poolState) {
	s.blocks[b.number] = b
	for ns := range b.Namespaces {
		s.of[ns] = insertedBlock(s.of[ns], b)
	}
	s.owned += b.n
}

// leave takes a block out.
func (s *split) leave(b *poolState) {
	delete(s.blocks, b.number)
	for ns := range b.Namespaces {
		leave(s.of, ns, b)
	}
	s.owned -= b.n
}

// hold counts an address that a namespace has in a block.
func (s *split) hold(number uint64, namespace string, by int) {
	in := s.held[number]
	if in == nil {
		in = map[string]int{}
		s.held[number] = in
	}
	if s.heldBy[namespace] == nil {
		s.heldBy[namespace] = map[uint64]struct{}{}
	}
	s.heldBy[namespace][number] = struct{}{}
	if in[namespace] += by; in[namespace] != 0 {
		return
	}
	if delete(in, namespace); len(in) == 0 {
		delete(s.held, number)
	}
	if delete(s.heldBy[namespace], number); len(s.heldBy[namespace]) == 0 {
		delete(s.heldBy, namespace)
	}
}

// candidates returns the numbers of the blocks that a namespace may be given, those first in which it alone has
// addresses: a block that was deleted by force is given back to those who use it.
func (s *split) candidates(namespace string) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var own []uint64
		for number := range s.heldBy[namespace] {
			if s.blocks[number] == nil && len(s.held[number]) == 1 {
				own = append(own, number)
			}
		}
		slices.SortFunc(own, func(a, b uint64) int { return cmp.Compare(s.away(a, namespace), s.away(b, namespace)) })
		for _, number := range own {
			if !yield(number) {
				return
			}
		}
		at := s.start(namespace)
		for range s.taken.free() {
			number, _ := s.taken.next(at)
			if !yield(number) {
				return
			}
			at = number + 1
		}
	}
}

// available reports whether a namespace may be given a block.
func (s *split) available(number uint64, namespace string) bool {
	if s.blocks[number] != nil {
		return false
	}
	_, own := s.held[number][namespace]
	return !s.taken.isTaken(number) || own && len(s.held[number]) == 1
}

// mark brings the free set up to date with a block.
func (s *split) mark(number uint64) {
	s.taken.set(number, s.blocks[number] != nil || len(s.held[number]) > 0 || s.void.isTaken(number))
}

// inside returns what a pool serves of the addresses of a block, with their numbers in the pool.
func (p *poolState) inside(block netip.Prefix) (parts []segment) {
	r := netipx.RangeOfPrefix(block)
	at, _ := slices.BinarySearchFunc(p.segments, r.From(), func(s segment,
		a netip.Addr) int {
		return s.To().Compare(a)
	})
	for _, s := range p.segments[at:] {
		if r.To().Less(s.From()) {
			break
		}
		from, to := s.From(), s.To()
		if from.Less(r.From()) {
			from = r.From()
		}
		if r.To().Less(to) {
			to = r.To()
		}
		parts = append(parts, segment{
			IPRange: netipx.IPRangeFrom(from, to), base: s.base + ipaddr.Distance(s.From(), from), pool: p,
		})
	}
	return parts
}

// resplit computes the blocks of a pool anew after it was worked out what it serves.
func (p *poolState) resplit() {
	s := p.split
	s.taken, s.void, s.owned = newFreeSet(s.n), newFreeSet(s.n), 0
	clear(s.held)
	clear(s.heldBy)
	var next uint64 // the lowest number that is not looked at yet
	skip := func(to uint64) {
		for ; next < to; next++ {
			s.taken.set(next, true)
			s.void.set(next, true)
		}
	}
	for _, part := range p.segments {
		from, _ := s.number(part.From())
		to, _ := s.number(part.To())
		skip(from)
		next = max(next, to+1)
	}
	skip(s.n)
	for number, b := range s.blocks {
		b.cut()
		s.owned += b.n
		s.taken.set(number, true)
	}
}
