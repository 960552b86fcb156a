package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BCSNetPool is a range of addresses in one subnet and who may use them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bnp
// +kubebuilder:subresource:status
type BCSNetPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BCSNetPoolSpec   `json:"spec"`
	Status BCSNetPoolStatus `json:"status,omitempty"`
}

// BCSNetPoolSpec is what the operator wants of a pool.
type BCSNetPoolSpec struct {
	// net is the subnet's address, IPv4 or IPv6, without the prefix length. It cannot change while
	// addresses of the pool are in use.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=39
	Net string `json:"net"`

	// mask is the prefix length of the subnet, 1 to 32 for IPv4 and 1 to 128 for IPv6. It cannot
	// change while addresses of the pool are in use.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Mask int32 `json:"mask"`

	// gateway of the subnet. It lies inside the subnet and is never handed out.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=39
	Gateway string `json:"gateway"`

	// hosts are the IPs of the hosts that may draw from the pool. An empty list lets no host draw.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=39
	Hosts []string `json:"hosts,omitempty"`

	// availableIPs are the addresses to hand out: single addresses, ranges "a-b" or "a~b", and
	// CIDRs, mixed as you like. Network, broadcast and gateway addresses are left out by themselves.
	// The list is yours: nothing bcsnet does rewrites it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=79
	AvailableIPs []string `json:"availableIPs,omitempty"`

	// excludeIPs are taken out of availableIPs; the same notation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=79
	ExcludeIPs []string `json:"excludeIPs,omitempty"`

	// namespaces binds the pool to these namespaces alone, and them to their bound pools. A pool
	// without namespaces serves every namespace that has no pool of its own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// network names the network that this pool is part of. The IPv4 and the IPv6 pools of one
	// network belong together: a request takes one address of each family.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Network string `json:"network,omitempty"`

	// priority orders the pools that fit a request; the higher is tried first, equal ones by name.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// vlan is the VLAN ID that the CNI plugin tags with; 0 means untagged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`

	// mtu in bytes that the CNI plugin sets; 0 leaves it to the plugin.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`

	// routes that the CNI plugin adds in the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Routes []Route `json:"routes,omitempty"`

	// dns is what the CNI plugin reports as resolver configuration.
	// +optional
	DNS *DNS `json:"dns,omitempty"`

	// materialize says when the BCSNetIP objects of the pool are created: Always one object per
	// address when the pool is made (up to 65,536 in ranges and CIDRs), OnDemand when an address is first used. Auto (the default)
	// creates those of addresses written singly, and those of ranges and CIDRs while they are at
	// most 4,096 addresses together.
	// +optional
	// +kubebuilder:validation:Enum=Always;OnDemand;Auto
	// +kubebuilder:default=Auto
	Materialize Materialize `json:"materialize,omitempty"`

	// cordoned stops new allocations from the pool; addresses in use stay as they are.
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
}

// Materialize says when BCSNetIP objects are created.
type Materialize string

// Values of Materialize.
const (
	MaterializeAuto     Materialize = "Auto"
	MaterializeAlways   Materialize = "Always"
	MaterializeOnDemand Materialize = "OnDemand"
)

// MaterializeAutoLimit is the largest number of addresses in ranges and CIDRs for which Auto
// creates one object each.
const MaterializeAutoLimit = 4096

// MaterializeAlwaysLimit is the largest number of addresses in ranges and CIDRs for which Always
// creates one object each; above it the pool behaves like OnDemand and its Ready condition says so.
const MaterializeAlwaysLimit = 65536

// Route is one route for the pod.
type Route struct {
	// dst is the destination network as a CIDR.
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=43
	Dst string `json:"dst"`
	// gw is the next hop; without it, the pool's gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	GW string `json:"gw,omitempty"`
}

// DNS is the resolver configuration in the form of the CNI specification.
type DNS struct {
	// nameservers in order of preference.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=39
	Nameservers []string `json:"nameservers,omitempty"`
	// domain used for short host names.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`
	// search domains in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Search []string `json:"search,omitempty"`
	// options of the resolver.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Options []string `json:"options,omitempty"`
}

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
}

// BCSNetPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type BCSNetPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BCSNetPool `json:"items"`
}
