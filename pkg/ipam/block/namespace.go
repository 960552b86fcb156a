package block

import (
	"cmp"
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// This file decides which blocks serve a namespace: first the blocks that it owns, in the order of Compare, then the
// candidates, in their order. Every replica decides alike. Whether a namespace's blocks count for a request is decided
// in memory.PoolState.ownsBlocks.

// Owns returns the blocks of a namespace, in the order in which it draws from them. Do not change the list.
func (s *Split[B]) Owns(namespace string) []B { return s.of[namespace] }

// Compare orders the blocks of a namespace as it draws from them: by the priority that they have themselves, then by
// how far they are behind the one at which the namespace begins.
func (s *Split[B]) Compare(a, b B) int {
	return cmp.Or(cmp.Compare(b.Rank(), a.Rank()),
		cmp.Compare(s.away(a.Number(), a.Owner()), s.away(b.Number(), b.Owner())))
}

// list puts a block where its namespace finds it.
func (s *Split[B]) list(b B) {
	of := s.of[b.Owner()]
	at, _ := slices.BinarySearchFunc(of, b, s.Compare)
	s.of[b.Owner()] = slices.Insert(of, at, b)
}

// unlist undoes list.
func (s *Split[B]) unlist(b B) {
	ns := b.Owner()
	if s.of[ns] = slices.DeleteFunc(s.of[ns], func(o B) bool { return o == b }); len(s.of[ns]) == 0 {
		delete(s.of, ns)
	}
}

// Candidates returns the numbers of the blocks that a namespace may be given, first those in which only it has
// addresses: a block that was deleted by force is given back to those who use it.
func (s *Split[B]) Candidates(namespace string) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		var own []uint64
		for number := range s.heldBy[namespace] {
			if _, exists := s.blocks[number]; !exists && len(s.held[number]) == 1 {
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
		for range s.taken.Free() {
			number, _ := s.taken.Next(at)
			if !yield(number) {
				return
			}
			at = number + 1
		}
	}
}

// Available reports whether a namespace may be given a block.
func (s *Split[B]) Available(number uint64, namespace string) bool {
	if _, exists := s.blocks[number]; exists {
		return false
	}
	_, own := s.held[number][namespace]
	return !s.taken.IsTaken(number) || own && len(s.held[number]) == 1
}

// Open returns how many blocks can be given to any namespace.
func (s *Split[B]) Open() uint64 { return s.taken.Free() }

// start returns the number at which the blocks of a namespace begin: every replica tries the same ones, and a namespace
// that comes again gets its old block, if that is free.
func (s *Split[B]) start(namespace string) uint64 {
	if s.n == 0 {
		return 0
	}
	return xxhash.Sum64String(namespace) % s.n
}

// away returns how far a block is behind the one at which a namespace begins.
func (s *Split[B]) away(number uint64, namespace string) uint64 {
	return (number + s.n - s.start(namespace)) % s.n
}
