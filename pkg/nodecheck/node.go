package nodecheck

import (
	"net/netip"
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
