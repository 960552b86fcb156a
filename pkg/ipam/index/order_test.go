package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func ordered(o ipam.Order) option { return func(p *ipam.Pool) { p.Order = o } }

// A pool hands out the lowest address that is free and has rested, if it is told to, whoever asks; also a group and a
// block of such a pool.
func TestPickTheLowest(t *testing.T) {
	const sixteen = "10.0.0.16-10.0.0.31"
	group := func(options ...option) []ipam.Pool {
		p := pool(t, "g", "10.0.0.0/24", []string{"10.0.0.24-10.0.0.31"}, options...)
		p.Parent, p.Carved = "a", mustSet(t, "10.0.0.24-10.0.0.31")
		p.Namespaces = map[string]struct{}{"shop": {}}
		return []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{sixteen}, ordered(ipam.Lowest)), p}
	}
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		before func(x *Index)
		want   string
	}{
		"the first":     {pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{sixteen}, ordered(ipam.Lowest))}, want: "a 10.0.0.16"},
		"the next free": {pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{sixteen}, ordered(ipam.Lowest))}, before: func(x *Index) { x.take("a", "10.0.0.16", "10.0.0.18") }, want: "a 10.0.0.17"},
		"of entries in any order": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.30", "10.0.0.20-10.0.0.22", "10.0.0.9"}, ordered(ipam.Lowest))},
			want:  "a 10.0.0.9",
		},
		"not one that cools": {
			pools:  []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{sixteen}, ordered(ipam.Lowest), coolFor(time.Hour))},
			before: func(x *Index) { x.Feed.Watched(gaveUp("10.0.0.16", "a", 1, 0)) }, want: "a 10.0.0.17",
		},
		"a group has its parent's order": {pools: group(), want: "g 10.0.0.24"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"a", "b", "c", "d"} {
				x := indexOf(tc.pools...)
				if tc.before != nil {
					tc.before(x)
				}
				w := want()
				w.Key = key
				picks, refusal := x.Pick(w, at(1))
				if refusal != nil {
					t.Fatal(refusal)
				}
				if diff := cmp.Diff([]string{tc.want}, picked(picks)); diff != "" {
					t.Errorf("key %s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
	spread := map[string]bool{}
	for key := range 8 {
		x := indexOf(group(ordered(ipam.Spread))...)
		w := want()
		w.Key = fmt.Sprint(key)
		picks, _ := x.Pick(w, at(1))
		spread[picked(picks)[0]] = true
	}
	if len(spread) == 1 {
		t.Error("a group that says Spread gives one address to all")
	}
}

// Many who ask at once are given one address each: none of them tries the one that another is being given.
func TestPickTheLowestAtOnce(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.16-10.0.0.79"}, ordered(ipam.Lowest)))
	all := make(chan string)
	for i := range 64 {
		go func() {
			w := want()
			w.Key = fmt.Sprint(i)
			picks, _ := x.Pick(w, at(1))
			all <- fmt.Sprint(picked(picks))
		}()
	}
	var got []string
	for range 64 {
		got = append(got, <-all)
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 64 {
		t.Errorf("64 were given %d addresses", n)
	}
	checkFreeSets(t, x)
}
