package importer

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Rows are the pools, claims and addresses of another system, as its reader found them.
type Rows struct {
	// System is the name by which the command import knows the system. It labels what the import makes, and begins the
	// reasons of addresses.
	System string
	// Pools are complete except that the plan cordons them.
	Pools     []v1.BCSNetPool
	Claims    []Claim
	Addresses []Address
	// Conflicts are contradictions that the reader found; Left are objects that it does not take over, or not entirely.
	Conflicts, Left []Remark
	// Stored has the pools and claims of a backup as they are in the file, by PoolObject and ClaimObject, with fields
	// that this release does not know. It is nil for other systems.
	Stored map[string]*unstructured.Unstructured
}

// PoolObject names a pool in messages.
func PoolObject(name string) string { return "pool " + name }

// ClaimObject names the claim namespace/name in messages.
func ClaimObject(key string) string { return "claim " + key }

// State of an address in the other system.
type State uint8

const (
	// Free addresses are taken over only if a claim is bound to them.
	Free State = iota
	// Held addresses belong to a container of a pod.
	Held
	// Kept addresses wait for a pod. They are taken over for their claim, or reserved if they have none.
	Kept
	// Unclear addresses contradict themselves; Reason says how.
	Unclear
)

// Address is an address of the other system.
type Address struct {
	netip.Addr

	// Object names the object of the other system in messages, for example "BCSNetIP 10.1.0.20".
	Object string
	State  State
	// Lease is the address as it is in a backup; nil for other systems. Beside it, only Claim and Updated are set.
	Lease *lease.Lease
	// Holder is what the other system stores of the holder of a Held address. Fields that it does not store are zero:
	// without a pod's name the pod that reports the address is taken.
	Holder lease.Holder
	// Claim is namespace/name of the claim that the object names; empty for none.
	Claim string
	// Reason says why a Kept address without a claim is kept, or what is wrong with an Unclear one. That of a Held one
	// says why it is kept if its pod does not run; empty if it is not.
	Reason string
	// Updated is the time of the other system's last change of the address; zero if it does not store that.
	Updated time.Time
	// Counting reports whether the term of a Kept address runs since Updated; else it begins with the import.
	Counting bool
}

// pod returns namespace/name of the pod that holds the address; empty if that is not stored.
func (a Address) pod() string {
	if a.Holder.PodName == "" {
		return ""
	}
	return a.Holder.Namespace + "/" + a.Holder.PodName
}

// holder names the holder in messages.
func (a Address) holder() string {
	if a.Holder.PodName != "" {
		return a.pod()
	}
	return "container " + a.Holder.ContainerID
}

// Claim is a claim of the other system: a name that keeps an address.
type Claim struct {
	Namespace, Name string
	// Object names the object of the other system in messages.
	Object string
	// Made is the claim as it is in a backup; nil for other systems. Beside it, only the names are set.
	Made *v1.BCSNetIPClaim
	// Addr is the address that the claim is for; invalid for none. Bound reports whether it has it already.
	Addr  netip.Addr
	Bound bool
	// Keep is the time for which the address is kept after its pod is gone; 0 until somebody frees it.
	Keep time.Duration
	// Left says why the claim is not taken over; empty if it is. Contradiction reports whether somebody has to resolve
	// that.
	Left          string
	Contradiction bool
}

// Key returns namespace/name of the claim.
func (c Claim) Key() string { return c.Namespace + "/" + c.Name }

// Remark is about an object of the other system.
type Remark struct{ Object, Cause string }
