package freeset

import "math/bits"

// Set keeps which of the numbers 0..n-1 are free, n being at most 2^64-1. It takes memory only
// where something is taken, whether close together or far apart, and finds the first free number at
// or after any other in a few steps.
//
// It is a tree of 64 branches without pointers: a word of level 0 says which of 64 numbers are taken,
// a word of any level above says which 64 words of the level below have no room left. Words that are
// zero do not exist.
type Set struct {
	n      uint64
	taken  uint64
	levels []map[uint64]uint64
}

// New returns a set of n numbers, all of them free.
func New(n uint64) *Set { return &Set{n: n} }

// Len returns how many numbers there are.
func (f *Set) Len() uint64 { return f.n }

// Used returns how many numbers are taken.
func (f *Set) Used() uint64 { return f.taken }

// Free returns how many numbers are free.
func (f *Set) Free() uint64 { return f.n - f.taken }

// IsTaken reports whether number i, which is below n, is taken.
func (f *Set) IsTaken(i uint64) bool { return f.word(0, i/64)&(1<<(i%64)) != 0 }

// Mark marks number i, which is below n, as taken or free.
func (f *Set) Mark(i uint64, taken bool) {
	if f.IsTaken(i) == taken {
		return
	}
	if taken {
		f.taken++
	} else {
		f.taken--
	}
	for level := 0; ; level++ {
		before := f.word(level, i/64)
		after := before ^ 1<<(i%64)
		f.setWord(level, i/64, after)
		if before != ^uint64(0) && after != ^uint64(0) {
			return
		}
		i /= 64
	}
}

// Next returns the first free number at or after start, going round at the end; ok is false when none is free.
func (f *Set) Next(start uint64) (i uint64, ok bool) {
	if f.taken >= f.n {
		return 0, false
	}
	if i := f.After(start % f.n); i < f.n {
		return i, true
	}
	return f.After(0), true
}

// After returns the first number at or after i that is not taken; it may be n or more.
func (f *Set) After(i uint64) uint64 {
	level := 0
	for {
		if room := ^f.word(level, i/64) & (^uint64(0) << (i % 64)); room != 0 {
			i = i/64*64 + uint64(bits.TrailingZeros64(room))
			break
		}
		i = i/64 + 1
		level++
	}
	for ; level > 0; level-- {
		i = i*64 + uint64(bits.TrailingZeros64(^f.word(level-1, i)))
	}
	return i
}

// FreeIn returns how many of the n numbers from one on, all of them below f.n, are free. It looks at as many words as
// these numbers have, or at all that exist where those are fewer.
func (f *Set) FreeIn(from, n uint64) uint64 {
	if n == 0 || len(f.levels) == 0 {
		return n
	}
	first, last := from/64, (from+n-1)/64
	within := func(at, word uint64) uint64 {
		if at == first {
			word &= ^uint64(0) << (from % 64)
		}
		if at == last {
			word &= ^uint64(0) >> (63 - (from+n-1)%64)
		}
		return uint64(bits.OnesCount64(word))
	}
	taken := uint64(0)
	if last-first < uint64(len(f.levels[0])) {
		for at := first; at <= last; at++ {
			taken += within(at, f.levels[0][at])
		}
		return n - taken
	}
	for at, word := range f.levels[0] {
		if first <= at && at <= last {
			taken += within(at, word)
		}
	}
	return n - taken
}

// NextIn returns the first free number at or after start of the n numbers from one on, going round at their end; ok is
// false when none of them is free.
func (f *Set) NextIn(from, n, start uint64) (i uint64, ok bool) {
	if n == 0 {
		return 0, false
	}
	if i := f.After(from + start%n); i-from < n {
		return i, true
	}
	i = f.After(from)
	return i, i-from < n
}

func (f *Set) word(level int, i uint64) uint64 {
	if level >= len(f.levels) {
		return 0
	}
	return f.levels[level][i]
}

func (f *Set) setWord(level int, i, word uint64) {
	if level == len(f.levels) {
		f.levels = append(f.levels, map[uint64]uint64{})
	}
	if word == 0 {
		delete(f.levels[level], i)
		return
	}
	f.levels[level][i] = word
}
