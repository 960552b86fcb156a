package v1

// SecondAttachment is a second pod of one virtual machine, of the namespace of the first. Its fields mean what those of
// the lease do.
type SecondAttachment struct {
	// podName of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`
	// podUID of the pod.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PodUID string `json:"podUID,omitempty"`
	// containerID is the sandbox ID of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ContainerID string `json:"containerID"`
	// ifName is the interface of the pod that carries the address.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	IfName string `json:"ifName,omitempty"`
	// host is the IP of the host that the pod runs on.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`self == "" || isIP(self)`,message=`must be the IPv4 or IPv6 address of a host; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Host string `json:"host,omitempty"`
	// startedAt is the time at which the request of the pod began, RFC 3339 with nanoseconds.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	StartedAt string `json:"startedAt,omitempty"`
	// terminationGracePeriodSeconds of the pod, where it is longer than the usual 30.
	// +optional
	TerminationGracePeriodSeconds int32 `json:"terminationGracePeriodSeconds,omitempty"`
	// supersededContainerIDs are earlier containers of the pod, newest last, at most four.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=256
	SupersededContainerIDs []string `json:"supersededContainerIDs,omitempty"`
	// boundVersion is the resourceVersion with which the pod got the address, where the object was written again since.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	BoundVersion string `json:"boundVersion,omitempty"`
	// cniNetwork is the name of the network configuration that the pod is attached by.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CNINetwork string `json:"cniNetwork,omitempty"`
	// given has the settings that the pod's container got with the address.
	// +optional
	Given *GivenSettings `json:"given,omitempty"`
}

// GivenSettings are the settings that a container got with its address. A missing field was not in the answer.
type GivenSettings struct {
	// gateway of the answer.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:Pattern=`^[0-9a-f.:]*$`
	Gateway string `json:"gateway,omitempty"`
	// gatewayFrom names the source of a gateway that replaced the pool's: Host is the request or the Node, Annotation
	// the pod or its workload. It is empty for the pool's.
	// +optional
	// +kubebuilder:validation:Enum=Host;Annotation
	GatewayFrom string `json:"gatewayFrom,omitempty"`
	// vlan is the VLAN ID.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`
	// mtu in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
	// routes as "10.8.0.0/16 via 10.20.0.9", without via for those by the gateway.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=87
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f.:]+/[0-9]{1,3}( via [0-9a-f.:]+)?$`
	Routes []string `json:"routes,omitempty"`
	// routesDigest stands for routes that take more than 120 bytes.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	// +kubebuilder:validation:MaxLength=16
	RoutesDigest string `json:"routesDigest,omitempty"`
	// dns as the lines of a resolv.conf, each with one value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	DNS []string `json:"dns,omitempty"`
	// dnsDigest stands for dns that takes more than 120 bytes.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	// +kubebuilder:validation:MaxLength=16
	DNSDigest string `json:"dnsDigest,omitempty"`
}
