package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolPhase names the state of a pool in one word.
type PoolPhase string

// Values of PoolPhase.
const (
	// PoolInitializing: objects of the pool are still being created, or it has not been seen yet.
	PoolInitializing PoolPhase = "Initializing"
	// PoolNormal: the pool is as its spec says.
	PoolNormal PoolPhase = "Normal"
	// PoolTerminating: the pool was deleted and waits for its addresses to be released.
	PoolTerminating PoolPhase = "Terminating"
)

// BCSNetPoolStatus has the counts and conditions of a pool, as the controller sees them.
type BCSNetPoolStatus struct {
	// status is Initializing, Normal or Terminating.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Status PoolPhase `json:"status,omitempty"`
	// updateTime is the time at which the controller last changed this status, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UpdateTime string `json:"updateTime,omitempty"`
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Exhausted, Overlap, Draining.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// capacity is the number of addresses that the pool may allocate, in use or not; it saturates at 2^63-1.
	// +optional
	Capacity int64 `json:"capacity"`
	// available is the number of addresses that can be allocated now; it saturates at 2^63-1.
	// +optional
	Available int64 `json:"available"`
	// active is the number of addresses that containers hold.
	// +optional
	Active int64 `json:"active"`
	// reserved is the number of addresses that are kept for someone without being in use.
	// +optional
	Reserved int64 `json:"reserved"`
	// cooling is the number of addresses that only the cooldown keeps from being available.
	// +optional
	Cooling int64 `json:"cooling"`
	// hosts is the number of hosts that may draw: those that spec.hosts lists, and the nodes in spec.hostSubnets and of
	// spec.hostSelector.
	// +optional
	Hosts int64 `json:"hosts"`
	// carved are the addresses, single ones and ranges "a-b", that the parent has handed over to a pool with a parent:
	// no replica still allocates them for the parent, and nobody had one. The pool allocates only these. Of a pool with
	// blockSize it is the subnet, once blocks of it may be given.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=65536
	// +kubebuilder:validation:items:MaxLength=79
	Carved []string `json:"carved,omitempty"`
}

// BCSNetPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type BCSNetPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BCSNetPool `json:"items"`
}
