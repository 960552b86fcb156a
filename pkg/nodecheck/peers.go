package nodecheck

import (
	"math/rand/v2"
	"slices"
)

// Bounds of what each pod asks, so that hundreds of nodes are no storm.
const (
	// AllPeers is up to how many others each pod asks all of them.
	AllPeers = 32
	// Ring is how many of those that follow it a pod asks where there are more, so that each is asked by as many.
	Ring = 4
	// Drawn is how many more it asks then, drawn at random.
	Drawn = 4
)

// ChoosePeers returns, for each of n pods, whom it asks: all others up to AllPeers, else those of a ring that follow
// it, and some at random.
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

// following returns the count pods after one of n, around the ring.
func following(i, n, count int) (out []int) {
	for step := range count {
		out = append(out, (i+1+step)%n)
	}
	return out
}
