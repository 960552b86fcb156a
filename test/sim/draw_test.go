package sim_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// draw makes the choices about one thing. They depend on the seed and on the name of the thing alone: what is left out
// of a run changes nothing of the choices about all else, so a run can be made smaller while it fails.
func draw(seed uint64, name ...any) *rand.Rand {
	h := fnv.New64a()
	for _, part := range name {
		fmt.Fprint(h, part, "/")
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// slowest is longer than anything is on its way.
const slowest = 3 * time.Second

// delay is the time that a message takes on its way: a millisecond, at times much longer. No two are alike, so that
// what happens in one order happens in it again.
func delay(rng *rand.Rand) time.Duration {
	switch n := rng.IntN(1000); {
	case n < 3:
		return time.Duration(rng.Int64N(int64(slowest)))
	case n < 40:
		return time.Duration(rng.Int64N(int64(60 * time.Millisecond)))
	default:
		return time.Duration(rng.ExpFloat64() * float64(time.Millisecond) * 0.7)
	}
}
