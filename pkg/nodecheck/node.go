package nodecheck

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// Node is the result of the check for one node.
type Node struct {
	Name string
	// Pod is the pod of the check; empty if none was created.
	Pod string
	// Failure is the reason why the node has no working pod, in which case nothing else is known; nil if the pod runs.
	Failure *Finding
	// Addrs are the addresses of the pod, and ReadyIn is the time from its creation until it ran with them.
	Addrs   []Address
	ReadyIn time.Duration
	Plan    Plan
	// Report is the report of the pod; nil if there is none.
	Report *Report
	// Release is the outcome of deleting the pod and releasing its addresses.
	Release Release
}

// Address is an address that the pod got.
type Address struct {
	Addr    netip.Addr
	Pool    string
	Gateway netip.Addr
}

// Release is the outcome of the deletion of a pod.
type Release struct {
	// Asked reports whether the pod was deleted and the outcome was read.
	Asked bool
	// Left reports whether the pod still exists.
	Left bool
	// Held are the addresses that are still in use for the pod.
	Held []netip.Addr
	// Within is the time for which the check waited.
	Within time.Duration
}

// Finding is a problem of a node.
type Finding struct {
	// Check is the stable name of the test.
	Check string
	Node  string
	// Cause describes the problem and its reason; Fix is the next step.
	Cause, Fix string
}

// Tests, in the order in which the findings of a node are shown.
const (
	CheckNode      = "node"      // the node is there and Ready
	CheckPod       = "pod"       // a pod starts
	CheckAddress   = "address"   // the pod gets addresses of a pool
	CheckPeers     = "peers"     // it reaches the others
	CheckGateway   = "gateway"   // the gateway answers
	CheckDuplicate = "duplicate" // nobody else answers for its addresses
	CheckRelease   = "release"   // the end of the pod gives the addresses back
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
