package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The rules here run at every allocation and release, so they are few: what an address has from its
// pool (mask, and the family of the gateway) was judged there.

// BCSNetIP is one address and its lease record. Its name is the address; an IPv6 address is written
// out in full with "-" in place of ":". The controller creates it, people do not. It has no status
// subresource: creating an object can be the commit of an allocation, and finalizer and lease
// change in one write.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bnip,categories=bcsnet
// +kubebuilder:selectablefield:JSONPath=`.spec.pool`
// +kubebuilder:selectablefield:JSONPath=`.status.status`
// +kubebuilder:selectablefield:JSONPath=`.status.host`
// +kubebuilder:selectablefield:JSONPath=`.status.podNamespace`
// +kubebuilder:selectablefield:JSONPath=`.status.podName`
// +kubebuilder:selectablefield:JSONPath=`.status.containerID`
// +kubebuilder:selectablefield:JSONPath=`.status.owner`
// +kubebuilder:selectablefield:JSONPath=`.status.claim`
// +kubebuilder:printcolumn:name=Pool,type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name=Host,type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name=Namespace,type=string,JSONPath=`.status.podNamespace`
// +kubebuilder:printcolumn:name=Pod,type=string,JSONPath=`.status.podName`
// +kubebuilder:printcolumn:name=Owner,type=string,JSONPath=`.status.owner`,priority=1
// +kubebuilder:printcolumn:name=Claim,type=string,JSONPath=`.status.claim`,priority=1
// +kubebuilder:printcolumn:name=Container,type=string,JSONPath=`.status.containerID`,priority=1
// +kubebuilder:printcolumn:name=Interface,type=string,JSONPath=`.status.ifName`,priority=1
// +kubebuilder:printcolumn:name=CNINetwork,type=string,JSONPath=`.status.cniNetwork`,priority=1
// +kubebuilder:printcolumn:name=Gateway,type=string,JSONPath=`.status.given.gateway`,priority=1
// +kubebuilder:printcolumn:name=Updated,type=date,JSONPath=`.status.updateTime`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`isIP(self.metadata.name) || (self.metadata.name.matches('^[0-9a-f]{4}(-[0-9a-f]{4}){7}$') && isIP(self.metadata.name.replace('-', ':')))`,messageExpression=`'name %s is not the name of an address: IPv4 as in 10.0.0.20, IPv6 in full with - for :, as in 2001-0db8-0000-0000-0000-0000-0000-0020'.format([self.metadata.name])`,fieldPath=`.metadata`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.address) || self.spec.address == "" || !isIP(self.metadata.name.replace('-', ':')) || (isIP(self.spec.address) && ip(self.spec.address) in [ip(self.metadata.name.replace('-', ':'))])`,messageExpression=`'address %s is not the address %s that the object is named after'.format([self.spec.address, self.metadata.name.replace('-', ':')])`,fieldPath=`.spec.address`
type BCSNetIP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BCSNetIPSpec `json:"spec"`
	// +kubebuilder:default={status: Available}
	Status BCSNetIPStatus `json:"status,omitempty"`
}

// BCSNetIPSpec says which pool an address belongs to.
type BCSNetIPSpec struct {
	// pool that the address belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool"`
	// mask is the prefix length of the subnet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Mask int32 `json:"mask"`
	// gateway of the subnet, if it has one.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`self == "" || isIP(self)`,message=`must be an IPv4 or IPv6 address; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Gateway string `json:"gateway,omitempty"`
	// address in its usual notation where the object's name is not one: set for IPv6.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	Address string `json:"address,omitempty"`
}

// IPPhase is the state of an address.
type IPPhase string

// Values of IPPhase.
const (
	// IPAvailable: nobody holds the address.
	IPAvailable IPPhase = "Available"
	// IPActive: a container holds the address.
	IPActive IPPhase = "Active"
	// IPReserved: the address is kept for someone and not in use.
	IPReserved IPPhase = "Reserved"
)

// MaxSetSize bounds the addresses of one request.
const MaxSetSize = 16

// BCSNetIPStatus is the lease record of an address.
//
// +kubebuilder:validation:XValidation:rule=`self.status != 'Active' || self.?containerID.orValue("") != "" || self.?owner.orValue("") != "" || self.?podUID.orValue("") != ""`,message=`an Active address has a holder: set containerID, podUID for a pod whose container is not known, or owner for a holder that is not a pod`,fieldPath=`.containerID`,reason=FieldValueRequired
type BCSNetIPStatus struct {
	// status is Available, Active or Reserved.
	// +optional
	// +kubebuilder:validation:Enum=Available;Active;Reserved
	// +kubebuilder:default=Available
	Status IPPhase `json:"status,omitempty"`
	// host is the IP of the host that the holder runs on.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	// +kubebuilder:validation:XValidation:rule=`self == "" || isIP(self)`,message=`must be the IPv4 or IPv6 address of a host; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken`
	Host string `json:"host,omitempty"`
	// fixed says that the claim keeps the address when its holder gives it up.
	// +optional
	Fixed bool `json:"fixed,omitempty"`
	// claim that the address belongs to, namespace/name of a BCSNetIPClaim.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Claim string `json:"claim,omitempty"`
	// containerID of the holder, the sandbox ID that the container runtime gives to CNI.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContainerID string `json:"containerID,omitempty"`
	// ifName is the interface of the holder that carries the address.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	IfName string `json:"ifName,omitempty"`
	// podPrimaryKey identifies the pod that a fixed address belongs to: its primarykey annotation,
	// else namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	PodPrimaryKey string `json:"podPrimaryKey,omitempty"`
	// podName of the holder.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`
	// podNamespace of the holder.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodNamespace string `json:"podNamespace,omitempty"`
	// podUID of the holder.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PodUID string `json:"podUID,omitempty"`
	// podUIDNamedBy is the beginning of the ID of the container whose request named podUID: the pod is that one and no
	// other. Where it is not the holder's containerID, podUID was looked up, and may be that of an earlier pod of the
	// name.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	PodUIDNamedBy string `json:"podUIDNamedBy,omitempty"`
	// cniNetwork is the name of the network configuration that the holder is attached by, as its CNI plugin says. The
	// garbage collection of that network on the host frees the address when the runtime no longer knows the holder.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CNINetwork string `json:"cniNetwork,omitempty"`
	// cniNetworkNamedBy is the beginning of the ID of the container whose request named cniNetwork. Where it is not the
	// holder's containerID, cniNetwork is that of an earlier holder.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	CNINetworkNamedBy string `json:"cniNetworkNamedBy,omitempty"`
	// addressNamedBy is the beginning of the ID of the holder's container where its request, or an annotation of its
	// pod, asked for this very address: it is not quarantined.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	AddressNamedBy string `json:"addressNamedBy,omitempty"`
	// given has the settings that the holder's container got with the address. The container keeps them if the pool
	// changes.
	// +optional
	Given *GivenSettings `json:"given,omitempty"`
	// givenTo begins the ID of the container that got the settings in given. If the holder's containerID does not begin
	// with it, the settings are those of an earlier holder.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	GivenTo string `json:"givenTo,omitempty"`
	// terminationGracePeriodSeconds of the holder's pod, where it is longer than the usual 30: for so long its
	// containers may run after its object has gone.
	// +optional
	TerminationGracePeriodSeconds int32 `json:"terminationGracePeriodSeconds,omitempty"`
	// owner names a holder that is not a pod: a virtual machine, a service address, an appliance.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Owner string `json:"owner,omitempty"`
	// supersededContainerIDs are earlier containers of the same pod that held this lease, newest
	// last, at most four. A late request of one of them changes nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=256
	SupersededContainerIDs []string `json:"supersededContainerIDs,omitempty"`
	// setSize counts the addresses that the request takes together, one of each family of a network; 0 stands for one.
	// If a request holds fewer, the next call adds the others.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	SetSize int32 `json:"setSize,omitempty"`
	// slot is which of the ranges that the request names the address is from, the first being 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Slot int32 `json:"slot,omitempty"`
	// startedAt is the time at which the request that took the address began, RFC 3339 with nanoseconds, by the
	// caller's clock if it told, else by the time of the API server. It tells a late ADD from a new one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	StartedAt string `json:"startedAt,omitempty"`
	// boundVersion is the resourceVersion with which the holder got the address, where the object was written again
	// since for another reason. Of two addresses that one container got from two replicas the lower one stays.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	BoundVersion string `json:"boundVersion,omitempty"`
	// secondAttachment is the pod to which the virtual machine in podName migrates live: both have the address until
	// one of them ends. At any other time there is none.
	// +optional
	SecondAttachment *SecondAttachment `json:"secondAttachment,omitempty"`
	// updateTime is the time of the last change of state, RFC 3339 with nanoseconds, by the time of the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UpdateTime string `json:"updateTime,omitempty"`
	// fixedIPExpiredTime is the time at which an address that is kept for its claim is given up, RFC 3339 with
	// nanoseconds. Empty while the address is in use, and where it is kept without a term.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FixedIPExpiredTime string `json:"fixedIPExpiredTime,omitempty"`
	// conflict is the last report that somebody else answers for the address.
	// +optional
	Conflict *AddressConflict `json:"conflict,omitempty"`
	// history is who held the address before and what was done to it by hand, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	History []HistoryEntry `json:"history,omitempty"`
}

// ConflictOutcome names the consequence of a report of a conflict.
type ConflictOutcome string

// Values of ConflictOutcome.
const (
	// ConflictQuarantined: the address is Reserved until the end that the conflict names.
	ConflictQuarantined ConflictOutcome = "Quarantined"
	// ConflictReleased: the holder gave the address up, and no quarantine followed, as somebody seems to answer for
	// every address.
	ConflictReleased ConflictOutcome = "Released"
	// ConflictKept: the holder kept the address, as a claim keeps it or the holder asked for it by name.
	ConflictKept ConflictOutcome = "Kept"
)

// AddressConflict is a report that somebody else in the network answers for an address. It stays when the address goes
// on to others: the next quarantine lasts longer.
type AddressConflict struct {
	// mac that answered, in lower case with colons.
	// +kubebuilder:validation:MinLength=17
	// +kubebuilder:validation:MaxLength=17
	MAC string `json:"mac"`
	// host that the report came from.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	Host string `json:"host,omitempty"`
	// containerID of the holder that reported it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ContainerID string `json:"containerID"`
	// reportedAt is the time of the report, RFC 3339 with nanoseconds, by the time of the API server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ReportedAt string `json:"reportedAt"`
	// outcome is Quarantined, Released or Kept.
	// +kubebuilder:validation:Enum=Quarantined;Released;Kept
	Outcome ConflictOutcome `json:"outcome"`
	// until is the end of the quarantine, RFC 3339 with nanoseconds.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Until string `json:"until,omitempty"`
}

// HistoryEntry is one earlier holder of an address, or one change of it by hand.
type HistoryEntry struct {
	// holder is namespace/pod, or the owner; empty when nobody held the address.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Holder string `json:"holder,omitempty"`
	// podUID of the holder, in the newest entry that has one: that pod need not wait for the cooldown.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PodUID string `json:"podUID,omitempty"`
	// ifName is the interface of that pod which had the address, where it is not eth0.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	IfName string `json:"ifName,omitempty"`
	// host that the holder ran on.
	// +optional
	// +kubebuilder:validation:MaxLength=39
	Host string `json:"host,omitempty"`
	// since is the time at which the holder got the address, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Since string `json:"since,omitempty"`
	// until is the time at which the holder lost the address, or of the change by hand, RFC 3339.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Until string `json:"until,omitempty"`
	// verb names a change that was made without the holder. An operator makes release, release-host, reserve and
	// unreserve. The controller makes collect if the pod is gone, and conflict if the holder reported that somebody
	// else answers for the address. It is empty if the holder gave the address up itself.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Verb string `json:"verb,omitempty"`
	// by is the user who did it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	By string `json:"by,omitempty"`
	// reason is why, in the user's words.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Reason string `json:"reason,omitempty"`
}

// BCSNetIPList is a list of addresses.
//
// +kubebuilder:object:root=true
type BCSNetIPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BCSNetIP `json:"items"`
}
