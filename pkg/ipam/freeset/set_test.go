package freeset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sizes are interesting sizes of a free set: around the borders of words, of the words of words, and
// of what a uint64 holds.
var sizes = []uint64{
	0, 1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 5000, 8192, 64*4096 - 1, 64 * 4096, 64*4096 + 1,
	math.MaxUint32, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64 - 4096, math.MaxUint64 - 64, math.MaxUint64 - 1,
	math.MaxUint64,
}

// naiveSet does what a free set does, by keeping what is taken.
type naiveSet struct {
	n     uint64
	taken map[uint64]bool
}

func (s *naiveSet) next(start uint64) (uint64, bool) {
	if uint64(len(s.taken)) >= s.n {
		return 0, false
	}
	for i := start % s.n; ; i = (i + 1) % s.n {
		if !s.taken[i] {
			return i, true
		}
	}
}

// near draws a number below n, most often one close to a border.
func near(n uint64) *rapid.Generator[uint64] {
	borders := []uint64{0, 64, 4096, 8192, 64 * 4096, n / 2, n}
	return rapid.Custom(func(t *rapid.T) uint64 {
		if rapid.IntRange(0, 9).Draw(t, "anywhere") == 0 {
			return rapid.Uint64Range(0, n-1).Draw(t, "number")
		}
		border := rapid.SampledFrom(borders).Draw(t, "border")
		offset := rapid.Uint64Range(0, 130).Draw(t, "offset")
		return (max(border, 65) - 65 + offset) % n
	})
}

func TestFreeSetBehavesLikeASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.SampledFrom(sizes[1:]), rapid.Uint64Range(1, 300)).Draw(t, "n")
		f, model := New(n), &naiveSet{n, map[uint64]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, taken := near(n).Draw(t, "i"), rapid.Bool().Draw(t, "taken")
				f.Mark(i, taken)
				if delete(model.taken, i); taken {
					model.taken[i] = true
				}
			},
			"run": func(t *rapid.T) {
				from, length := near(n).Draw(t, "from"), rapid.Uint64Range(1, 200).Draw(t, "length")
				taken := rapid.IntRange(0, 3).Draw(t, "taken") > 0
				for i := range min(length, n-from) {
					f.Mark(from+i, taken)
					if delete(model.taken, from+i); taken {
						model.taken[from+i] = true
					}
				}
			},
			"next": func(t *rapid.T) {
				start := near(n).Draw(t, "start")
				i, ok := f.Next(start)
				if want, wantOK := model.next(start); i != want || ok != wantOK {
					t.Fatalf("next(%d) = %d, %v, want %d, %v", start, i, ok, want, wantOK)
				}
			},
			"": func(t *rapid.T) {
				if want := n - uint64(len(model.taken)); f.Free() != want {
					t.Fatalf("free() = %d, want %d", f.Free(), want)
				}
			},
		})
		for _, i := range slices.Sorted(maps.Keys(model.taken)) {
			f.Mark(i, false)
		}
		for level, words := range f.levels {
			if len(words) > 0 {
				t.Fatalf("level %d keeps %d words of an empty set", level, len(words))
			}
		}
	})
}

func TestFreeSetFilledToTheLast(t *testing.T) {
	for _, n := range sizes {
		if n > 300_000 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := New(n)
			start := n / 3
			for k := range n {
				want := (start + k) % n
				if i, ok := f.Next(start); !ok || i != want {
					t.Fatalf("next(%d) with %d taken = %d, %v, want %d", start, k, i, ok, want)
				}
				f.Mark(want, true)
			}
			if i, ok := f.Next(start); ok || f.Free() != 0 {
				t.Fatalf("a full set of %d gave %d and says %d are free", n, i, f.Free())
			}
			if n == 0 {
				return
			}
			f.Mark(n-1, false)
			if i, ok := f.Next(start); !ok || i != n-1 {
				t.Errorf("next(%d) = %d, %v, want the only free number %d", start, i, ok, n-1)
			}
		})
	}
}

func TestFreeSetNearTwoToThe64(t *testing.T) {
	const n = math.MaxUint64
	f := New(n)
	for i := uint64(n - 10_000); i < n; i++ {
		f.Mark(i, true)
	}
	if i, ok := f.Next(n - 9_000); !ok || i != 0 {
		t.Errorf("next goes round to %d, %v, want 0", i, ok)
	}
	if f.Free() != n-10_000 {
		t.Errorf("free() = %d, want %d", f.Free(), uint64(n-10_000))
	}
	f.Mark(0, true)
	if i, _ := f.Next(n - 1); i != 1 {
		t.Errorf("next(n-1) = %d, want 1", i)
	}
}
