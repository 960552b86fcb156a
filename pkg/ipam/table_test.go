package ipam

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A table finds what was added and not removed, also where hashes meet.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]uint64{0, 3, 63, ^uint64(0)}).Draw(t, "bits of the hash")
		x := table{
			hash: func(r *record) uint64 { return r.version * 0x9e3779b97f4a7c15 & bits },
			next: func(r *record) **record { return &r.nextAddr },
		}
		in := map[uint64]*record{}
		find := func(version uint64) *record {
			for r := x.first(version * 0x9e3779b97f4a7c15 & bits); r != nil; r = r.nextAddr {
				if r.version == version {
					return r
				}
			}
			return nil
		}
		next := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "how many") {
					next++
					in[next] = &record{version: next}
					x.add(in[next])
				}
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("empty")
				}
				v := rapid.SampledFrom(slices.Sorted(maps.Keys(in))).Draw(t, "which")
				x.remove(in[v])
				delete(in, v)
			},
			"remove while going through": func(t *rapid.T) {
				by := rapid.Uint64Range(1, 5).Draw(t, "one in")
				for r := range x.all() {
					if r.version%by == 0 {
						x.remove(r)
						delete(in, r.version)
					}
				}
			},
			"": func(t *rapid.T) {
				if x.size != len(in) || len(x.heads)&(len(x.heads)-1) != 0 || x.size > len(x.heads) {
					t.Fatalf("%d records, counted %d, room for %d", len(in), x.size, len(x.heads))
				}
				for v := range next + 2 {
					if find(v) != in[v] {
						t.Fatalf("record %d: %v, want %v", v, find(v), in[v])
					}
				}
				all := map[uint64]*record{}
				for r := range x.all() {
					all[r.version] = r
				}
				if !maps.Equal(all, in) {
					t.Fatalf("all() gives %d records, want %d", len(all), len(in))
				}
			},
		})
	})
}
