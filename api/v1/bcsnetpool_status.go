package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolPhase is the one-word state of a pool.
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

// BCSNetPoolStatus is what the controller sees of a pool.
type BCSNetPoolStatus struct {
	// status is Initializing, Normal or Terminating.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Status PoolPhase `json:"status,omitempty"`
	// updateTime is when the controller last changed this status, RFC 3339.
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
	// capacity is how many addresses the pool may hand out, in use or not; it saturates at 2^63-1.
	// +optional
	Capacity int64 `json:"capacity"`
	// available is how many addresses can be handed out now; it saturates at 2^63-1.
	// +optional
	Available int64 `json:"available"`
	// active is how many addresses are held by containers.
	// +optional
	Active int64 `json:"active"`
	// reserved is how many addresses are kept for someone without being in use.
	// +optional
	Reserved int64 `json:"reserved"`
	// cooling is how many addresses would be available but for the cooldown.
	// +optional
	Cooling int64 `json:"cooling"`
	// hosts is how many hosts may draw: those that spec.hosts lists, and the nodes in spec.hostSubnets and of
	// spec.hostSelector.
	// +optional
	Hosts int64 `json:"hosts"`
	// carved are the addresses, single ones and ranges "a-b", that the parent has handed over to a pool with a parent:
	// no replica gives them out as the parent's any more, and nobody had one. The pool hands out these alone. Of a pool
	// with blockSize it is the subnet, once blocks of it may be given.
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
