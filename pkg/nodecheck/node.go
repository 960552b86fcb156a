package nodecheck

import (
	"net/netip"
	"time"
)

// Node is what is known of one node at the end of the check.
type Node struct {
	Name string
	// Pod is the pod of the check; empty where none was made.
	Pod string
	// Failure is why it has no working pod, which ends what can be known of it; nil where the pod runs.
	Failure *Finding
	// Addrs are the addresses of the pod, and ReadyIn is how long it took from its creation until it ran with them.
	Addrs   []Address
	ReadyIn time.Duration
	Plan    Plan
	// Report is what the pod found; nil where none came.
	Report *Report
	// Release is what became of the pod and its addresses after the end.
	Release Release
}

// Address is one that the pod got.
type Address struct {
	Addr    netip.Addr
	Pool    string
	Gateway netip.Addr
}

// Release is what became of a pod that was deleted.
type Release struct {
	// Asked: the pod was deleted, and it was looked what came of that.
	Asked bool
	// Left: the pod is still there.
	Left bool
	// Held are addresses that are in use for the pod.
	Held []netip.Addr
	// Within is how long was waited.
	Within time.Duration
}

// Finding is something that is wrong with a node.
type Finding struct {
	// Check is a stable word for what was looked at.
	Check string
	Node  string
	// Cause says what was found and why; Fix is the next step.
	Cause, Fix string
}

// Checks, in the order in which findings of a node are shown.
const (
	CheckNode      = "node"      // the node is there and Ready
	CheckPod       = "pod"       // a pod starts
	CheckAddress   = "address"   // the pod gets addresses of a pool
	CheckPeers     = "peers"     // it reaches the others
	CheckGateway   = "gateway"   // the gateway answers
	CheckDuplicate = "duplicate" // nobody else answers for its addresses
	CheckRelease   = "release"   // the end of the pod gives the addresses back
)
