package block

import (
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

type ownedBlock struct {
	number uint64
	owner  string
	rank   int32
}

func (b *ownedBlock) Number() uint64 { return b.number }

func (b *ownedBlock) Owner() string { return b.owner }

func (b *ownedBlock) Rank() int32 { return b.rank }

func (b *ownedBlock) Size() uint64 { return 4 }

// TestSplit: a namespace may be given the blocks that do not exist and in which nobody else has an address, each once,
// those first in which it has some. What is counted is what there is.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 8
		g := Grid{First: netip.MustParseAddr("10.0.0.0"), Bits: 30, n: n}
		s := NewSplit[*ownedBlock](g)
		exist, held := map[uint64]*ownedBlock{}, map[uint64]map[string]int{}
		voids := map[uint64]bool{}
		var parts []netipx.IPRange
		for i := range uint64(n) {
			if voids[i] = rapid.IntRange(0, 4).Draw(t, "void") == 0; !voids[i] {
				parts = append(parts, netipx.RangeOfPrefix(g.Prefix(i)))
			}
		}
		s.Reset(slices.Values(parts))
		spaces := []string{"shop", "bank", ""}
		number := func() uint64 { return rapid.Uint64Range(0, n-1).Draw(t, "number") }
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				i := number()
				if exist[i] != nil {
					t.Skip("it exists")
				}
				exist[i] = &ownedBlock{i, rapid.SampledFrom(spaces[:2]).Draw(t, "owner"), rapid.Int32Range(0, 2).Draw(t, "rank")}
				s.Enter(exist[i])
			},
			"leave": func(t *rapid.T) {
				i := number()
				if exist[i] == nil {
					t.Skip("it does not exist")
				}
				s.Leave(exist[i])
				delete(exist, i)
			},
			"hold": func(t *rapid.T) {
				i, ns := number(), rapid.SampledFrom(spaces).Draw(t, "namespace")
				if held[i] == nil {
					held[i] = map[string]int{}
				}
				by := 1
				if held[i][ns] > 0 && rapid.Bool().Draw(t, "gives up") {
					by = -1
				}
				if held[i][ns] += by; held[i][ns] == 0 {
					delete(held[i], ns)
				}
				s.Hold(i, ns, by)
			},
			"": func(t *rapid.T) {
				for _, ns := range spaces {
					var may, owned []uint64
					for i := range uint64(n) {
						alone := len(held[i]) == 1 && held[i][ns] > 0
						if exist[i] == nil && (alone || len(held[i]) == 0 && !voids[i]) {
							may = append(may, i)
						}
						if exist[i] != nil && exist[i].owner == ns {
							owned = append(owned, i)
						}
						if got := s.Available(i, ns); got != slices.Contains(may, i) {
							t.Fatalf("block %d is available to %q: %t", i, ns, got)
						}
					}
					got := slices.Collect(s.Candidates(ns))
					if !slices.IsSortedFunc(got, func(a, b uint64) int { return min(held[b][ns], 1) - min(held[a][ns], 1) }) {
						t.Fatalf("%q has addresses in %v, and is offered %v", ns, held, got)
					}
					if slices.Sort(got); !slices.Equal(got, may) {
						t.Fatalf("%q is offered %v, and may be given %v", ns, got, may)
					}
					of := s.Owns(ns)
					if !slices.IsSortedFunc(of, s.Compare) || len(of) != len(owned) {
						t.Fatalf("%q owns %v, want %v", ns, of, owned)
					}
				}
				c := s.Counts()
				if c.All != n || c.Owned != len(exist) || c.Owned+c.Held+c.Void+c.Free != n ||
					s.OwnedAddresses() != uint64(4*len(exist)) || s.Open() != uint64(c.Free) {
					t.Fatalf("counts %+v", c)
				}
			},
		})
	})
}
