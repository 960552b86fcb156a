package index

import (
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestOwnWritesOfPools: what this process wrote itself is overtaken by what the watch delivers of the same write.
func TestOwnWritesOfPools(t *testing.T) {
	entry := []string{"10.0.0.0/24"}
	made := pool(t, "a", "10.0.0.0/24", entry, created(2), generation(1))
	deleted := pool(t, "a", "10.0.0.0/24", entry, created(2), generation(2), terminating)
	later := pool(t, "a", "10.0.0.0/24", entry, created(9), generation(1))
	set := func(p ipam.Pool) func(*Index) { return func(x *Index) { x.Pools.WatchedPool(p) } }
	end := func(x *Index) { x.Pools.EndPool("a", made.Created) }
	gone := func(p ipam.Pool) func(*Index) { return func(x *Index) { x.Pools.WatchedPoolEnd(p.Name, p.Created) } }
	// add makes a pool, while the watch delivers something.
	add := func(p ipam.Pool, meanwhile ...func(*Index)) func(*Index) {
		return func(x *Index) {
			take, done := x.Pools.MakePool(p.Name)
			for _, deliver := range meanwhile {
				deliver(x)
			}
			take(p)
			done()
			if len(x.core.state.Pools.Making) > 0 {
				t.Errorf("it is being made for ever: %v", x.core.state.Pools.Making)
			}
		}
	}
	for name, tc := range map[string]struct {
		steps []func(*Index)
		want  string
	}{
		"made, before the watch":    {[]func(*Index){add(made)}, "generation 1 of 2, serves true"},
		"made, after its deletion":  {[]func(*Index){set(deleted), add(made)}, "generation 2 of 2, serves false"},
		"made, after a later one":   {[]func(*Index){set(later), add(made)}, "generation 1 of 9, serves true"},
		"made again":                {[]func(*Index){set(deleted), add(later)}, "generation 1 of 9, serves true"},
		"deleted, before the watch": {[]func(*Index){set(made), end}, "generation 1 of 2, serves false"},
		"deleted, after the watch":  {[]func(*Index){set(deleted), end}, "generation 2 of 2, serves false"},
		"deleted, and gone":         {[]func(*Index){set(deleted), gone(made), end}, "unknown"},
		"made, and gone":            {[]func(*Index){add(made, set(made), set(deleted), gone(deleted))}, "unknown"},
		"found, and gone":           {[]func(*Index){set(made), add(deleted, set(deleted), gone(deleted))}, "unknown"},
		"made again, after the end": {[]func(*Index){add(later, set(made), gone(made))}, "generation 1 of 9, serves true"},
		"an earlier one":            {[]func(*Index){add(later), set(made)}, "generation 1 of 9, serves true"},
		"the end of an earlier one": {[]func(*Index){add(later), set(deleted), gone(made)}, "generation 1 of 9, serves true"},
		"its own end":               {[]func(*Index){add(made), gone(made)}, "unknown"},
		"deleted, and made again":   {[]func(*Index){set(later), end}, "generation 1 of 9, serves true"},
	} {
		t.Run(name, func(t *testing.T) {
			x := New()
			for _, step := range tc.steps {
				step(x)
			}
			got := "unknown"
			if p, ok := x.Pools.Get("a"); ok {
				got = fmt.Sprintf("generation %d of %d, serves %v", p.Generation, int(p.Created.Sub(at(0)).Seconds()), p.Serves())
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
