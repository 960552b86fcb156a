package ledger

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
			hash: func(r *Record) uint64 { return r.Version * 0x9e3779b97f4a7c15 & bits },
			next: func(r *Record) **Record { return &r.NextAddr },
		}
		in := map[uint64]*Record{}
		find := func(version uint64) *Record {
			for r := x.first(version * 0x9e3779b97f4a7c15 & bits); r != nil; r = r.NextAddr {
				if r.Version == version {
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
					in[next] = &Record{Version: next}
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
				for r := range x.All() {
					if r.Version%by == 0 {
						x.remove(r)
						delete(in, r.Version)
					}
				}
			},
			"": func(t *rapid.T) {
				if x.Size != len(in) || len(x.Heads)&(len(x.Heads)-1) != 0 || x.Size > len(x.Heads) {
					t.Fatalf("%d records, counted %d, room for %d", len(in), x.Size, len(x.Heads))
				}
				for v := range next + 2 {
					if find(v) != in[v] {
						t.Fatalf("record %d: %v, want %v", v, find(v), in[v])
					}
				}
				all := map[uint64]*Record{}
				for r := range x.All() {
					all[r.Version] = r
				}
				if !maps.Equal(all, in) {
					t.Fatalf("all() gives %d records, want %d", len(all), len(in))
				}
			},
		})
	})
}
