package ipam

import "math/bits"

// freeSet keeps which of the numbers 0..n-1 are free. It takes memory only where something is taken,
// and finds the first free number at or after any other in a few steps: 64 numbers at a time inside
// a chunk of 4,096, a whole chunk at a time beyond it.
//
// Invariant: a chunk exists only while one of its numbers is taken; in the last chunk the bits at n
// and above are set from the start and not counted.
type freeSet struct {
	n      uint64
	taken  uint64
	chunks map[uint64]*chunk
}

const chunkSize = 64 * 64

type chunk struct {
	words [64]uint64 // bit set = taken
	full  uint64     // bit i set = words[i] has no free bit
	taken int
}

func newFreeSet(n uint64) *freeSet {
	return &freeSet{n: n, chunks: map[uint64]*chunk{}}
}

// free is how many numbers are free.
func (f *freeSet) free() uint64 { return f.n - f.taken }

// set marks number i, which is below n, as taken or free.
func (f *freeSet) set(i uint64, taken bool) {
	c, ok := f.chunks[i/chunkSize]
	if !ok {
		if !taken {
			return
		}
		c = f.newChunk(i / chunkSize)
	}
	w, bit := i%chunkSize/64, uint64(1)<<(i%64)
	if c.words[w]&bit != 0 == taken {
		return
	}
	c.words[w] ^= bit
	if taken {
		c.taken++
		f.taken++
	} else {
		c.taken--
		f.taken--
	}
	if c.words[w] == ^uint64(0) {
		c.full |= 1 << w
	} else {
		c.full &^= 1 << w
	}
	if c.taken == 0 {
		delete(f.chunks, i/chunkSize)
	}
}

func (f *freeSet) newChunk(k uint64) *chunk {
	c := &chunk{}
	if left := f.n - k*chunkSize; left < chunkSize {
		for i := left; i < chunkSize; i++ {
			c.words[i/64] |= 1 << (i % 64)
		}
		for w := range c.words {
			if c.words[w] == ^uint64(0) {
				c.full |= 1 << w
			}
		}
	}
	f.chunks[k] = c
	return c
}

// next is the first free number at or after start, going round at the end; ok is false when none is free.
func (f *freeSet) next(start uint64) (i uint64, ok bool) {
	if f.taken >= f.n {
		return 0, false
	}
	start %= f.n
	last := (f.n - 1) / chunkSize
	k, from := start/chunkSize, start%chunkSize
	for range uint64(len(f.chunks)) + 2 {
		c, exists := f.chunks[k]
		if !exists {
			return k*chunkSize + from, true
		}
		if at, ok := c.next(from); ok {
			return k*chunkSize + at, true
		}
		from = 0
		if k++; k > last {
			k = 0
		}
	}
	return 0, false
}

// next is the first free number of the chunk at or after from.
func (c *chunk) next(from uint64) (uint64, bool) {
	w := from / 64
	if free := ^c.words[w] & (^uint64(0) << (from % 64)); free != 0 {
		return w*64 + uint64(bits.TrailingZeros64(free)), true
	}
	if w == 63 {
		return 0, false
	}
	open := ^c.full & (^uint64(0) << (w + 1))
	if open == 0 {
		return 0, false
	}
	w = uint64(bits.TrailingZeros64(open))
	return w*64 + uint64(bits.TrailingZeros64(^c.words[w])), true
}
