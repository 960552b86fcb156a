package nodecheck

import (
	"math/rand/v2"
	"slices"
)

// Bounds of what each pod asks, so that hundreds of nodes do not cause too much traffic.
const (
	// AllPeers is the largest number of other pods for which each pod asks all of them.
	AllPeers = 32
	// Ring is the number of pods next to it in a ring that a pod asks if there are more, so that each is asked by the
	// same number.
	Ring = 4
	// Drawn is the number of random pods that it asks in addition.
	Drawn = 4
)

// ChoosePeers returns, for each of n pods, the pods that it asks: all others up to AllPeers, else those next to it in a
// ring and some random ones.
func ChoosePeers(n int, random *rand.Rand) [][]int {
	out := make([][]int, n)
	for i := range out {
		if n-1 <= AllPeers {
			out[i] = following(i, n, n-1)
			continue
		}
		out[i] = following(i, n, Ring)
		for len(out[i]) < Ring+Drawn {
			if j := random.IntN(n); j != i && !slices.Contains(out[i], j) {
				out[i] = append(out[i], j)
			}
		}
	}
	return out
}

// following returns the next count pods after one of n, around the ring.
func following(i, n, count int) (out []int) {
	for step := range count {
		out = append(out, (i+1+step)%n)
	}
	return out
}
