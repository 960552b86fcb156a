package ipam

import (
	"fmt"
	"testing"
)

// TestOwnWritesOfPools: what this process wrote itself is overtaken by what the watch delivers of the same write.
func TestOwnWritesOfPools(t *testing.T) {
	entry := []string{"10.0.0.0/24"}
	made := pool(t, "a", "10.0.0.0/24", entry, created(2), generation(1))
	deleted := pool(t, "a", "10.0.0.0/24", entry, created(2), generation(2), terminating)
	later := pool(t, "a", "10.0.0.0/24", entry, created(9), generation(1))
	set := func(p Pool) func(*Index) { return func(x *Index) { x.SetPool(p) } }
	add := func(p Pool) func(*Index) { return func(x *Index) { x.AddPool(p) } }
	end := func(x *Index) { x.EndPool("a", made.Created) }
	remove := func(x *Index) { x.RemovePool("a") }
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
		"deleted, and gone":         {[]func(*Index){set(deleted), remove, end}, "unknown"},
		"deleted, and made again":   {[]func(*Index){set(later), end}, "generation 1 of 9, serves true"},
	} {
		t.Run(name, func(t *testing.T) {
			x := NewIndex()
			for _, step := range tc.steps {
				step(x)
			}
			got := "unknown"
			if p, ok := x.Pool("a"); ok {
				got = fmt.Sprintf("generation %d of %d, serves %v", p.Generation, int(p.Created.Sub(at(0)).Seconds()), p.Serves())
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
