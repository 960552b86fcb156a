package v1

import (
	"strings"

	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BCSNetIPClaim holds addresses for a workload, or for all pods that name it. The addresses themselves say
// which claim they belong to; the claim's status is derived from them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bnc;sip,categories=bcsnet
// +kubebuilder:printcolumn:name=OwnerKind,type=string,JSONPath=`.spec.owner.kind`
// +kubebuilder:printcolumn:name=Namespace,type=string,JSONPath=`.metadata.namespace`
// +kubebuilder:printcolumn:name=Used,type=string,JSONPath=`.status.usage`
// +kubebuilder:printcolumn:name=IPPool,type=string,JSONPath=`.status.ipPool`
// +kubebuilder:printcolumn:name=Owner,type=string,JSONPath=`.spec.owner.name`,priority=1
// +kubebuilder:printcolumn:name=Policy,type=string,JSONPath=`.spec.releasePolicy`,priority=1
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type BCSNetIPClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BCSNetIPClaimSpec   `json:"spec,omitempty"`
	Status BCSNetIPClaimStatus `json:"status,omitempty"`
}

// ReleasePolicy says when the addresses of a claim go back to their pool.
type ReleasePolicy string

// Values of ReleasePolicy.
const (
	// ReleaseWithPod: when the pod gives them up.
	ReleaseWithPod ReleasePolicy = "WithPod"
	// ReleaseImmutable: when the workload no longer needs them: it was scaled down, or deleted.
	ReleaseImmutable ReleasePolicy = "Immutable"
	// ReleaseNever: when somebody says so.
	ReleaseNever ReleasePolicy = "Never"
	// ReleaseTimed: a time after the pod gave them up.
	ReleaseTimed ReleasePolicy = "Timed"
)

// MaxPoolsNamed bounds the number of pools that a claim or an annotation names.
const MaxPoolsNamed = 8

// MaxClaimAddresses bounds the number of addresses, ranges and CIDRs that a claim names.
const MaxClaimAddresses = 1024

// MaxKeep is the longest time that an address is kept for a claim of the policy Timed.
const MaxKeep = 8760 * time.Hour

// BCSNetIPClaimSpec says which addresses a claim holds, and for how long.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.preallocate) || !self.preallocate || has(self.replicas) || has(self.addresses)`,message=`preallocate says how many by replicas, or which by addresses: set one of them`,fieldPath=`.preallocate`
// +kubebuilder:validation:XValidation:rule=`!has(self.preallocate) || !self.preallocate || !has(self.releasePolicy) || self.releasePolicy in ['Immutable', 'Never']`,message=`preallocate goes with the releasePolicy Immutable or Never: with WithPod and Timed addresses go back that are not in use`,fieldPath=`.preallocate`
// +kubebuilder:validation:XValidation:rule=`(has(self.keep) && self.keep != "") == (has(self.releasePolicy) && self.releasePolicy == 'Timed')`,message=`keep goes with the releasePolicy Timed: set both, or none`,fieldPath=`.keep`
// +kubebuilder:validation:XValidation:rule=`has(self.owner) == has(oldSelf.owner) && (!has(self.owner) || self.owner == oldSelf.owner)`,message=`cannot change: make another claim`,fieldPath=`.owner`,reason=FieldValueForbidden
type BCSNetIPClaimSpec struct {
	// owner is the workload that the claim is for: its pods use the claim, unless an annotation of the pod or the
	// workload names another, and no others may. It is the topmost one, as a Deployment and not its ReplicaSet. Scaling
	// it down or deleting it frees the addresses of an Immutable claim. Without it, all pods may that name the claim by
	// an annotation.
	// +optional
	Owner *ClaimOwner `json:"owner,omitempty"`

	// replicas is the largest number of addresses of a family that the claim may have. Without it, the claim has as
	// many as its pods need.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	Replicas *int32 `json:"replicas,omitempty"`

	// surge is the number of addresses beyond replicas that the claim may have for a while, as in a rolling update.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	Surge int32 `json:"surge,omitempty"`

	// addresses that the claim may have, and no others: single addresses, ranges "a-b" or "a~b", and CIDRs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=79
	// +kubebuilder:validation:items:XValidation:rule=`isIP(self) || (isCIDR(self) ? [cidr(self)].all(c, c.ip() in [c.masked().ip()] && (c.ip().family() == 4 || c.prefixLength() >= 64)) : self.replace('~', '-').split('-', 2).map(a, isIP(a) ? ip(a).family() : 0).sum() in [8, 12])`,message=`must be an IPv4 or IPv6 address, a range a-b or a~b of two addresses of one family, or a CIDR without bits beyond its length and no larger than a /64`
	Addresses []string `json:"addresses,omitempty"`

	// pool that the claim's addresses come from; any that serves the pod without it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-.0-9a-z]*$`
	Pool string `json:"pool,omitempty"`

	// preallocate has the claim take its addresses before any pod asks for one: as many as replicas says, or all of
	// addresses, at most 65,536 of a family. It keeps that many whatever its workload needs, until it is
	// made smaller or deleted. Where there are too few it takes what there is, and the rest when that is free.
	// +optional
	Preallocate bool `json:"preallocate,omitempty"`

	// releasePolicy says when addresses go back to their pool: WithPod when the pod gives them up, Immutable when the
	// workload no longer needs them (it was scaled down, or deleted), Never when somebody says so, Timed a time after
	// the pod gave them up. A claim that is deleted gives up all that no pod has.
	// +optional
	// +kubebuilder:validation:Enum=WithPod;Immutable;Never;Timed
	// +kubebuilder:default=Immutable
	ReleasePolicy ReleasePolicy `json:"releasePolicy,omitempty"`

	// keep is the time that an address is kept after its pod gave it up, with the releasePolicy Timed: whole hours,
	// minutes and seconds such as 30m or 48h, at most 8760h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?$') && self != "" && duration(self) > duration('0s') && duration(self) <= duration('8760h')`,message=`must be whole hours, minutes and seconds such as 30m or 48h, more than 0 and at most 8760h`
	Keep *metav1.Duration `json:"keep,omitempty"`

	// sharedName is the name, free text, of a shared pool, by which pods of the namespaces use the claim. The
	// claim's own name is made from it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$`
	SharedName string `json:"sharedName,omitempty"`

	// namespaces whose pods may use the claim beside those of its own, naming it as namespace/name; * stands for all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([-0-9a-z]+|[*])$`
	Namespaces []string `json:"namespaces,omitempty"`
}

// ClaimOwner names a workload of the claim's namespace.
type ClaimOwner struct {
	// apiVersion of the workload, such as apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-./0-9A-Za-z]+$`
	APIVersion string `json:"apiVersion"`
	// kind of the workload, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[-0-9A-Za-z]+$`
	Kind string `json:"kind"`
	// name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-.:_0-9A-Za-z]+$`
	Name string `json:"name"`
}

// BCSNetIPClaimStatus shows the addresses of a claim. The addresses themselves decide.
type BCSNetIPClaimStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, OverLimit and Conflict, and Preallocated where the spec asks for that.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// used is the number of addresses that pods have.
	Used int64 `json:"used"`
	// held is the number of addresses of the claim: pods have them, or they are kept.
	Held int64 `json:"held"`
	// usage is used/held.
	// +optional
	Usage string `json:"usage,omitempty"`
	// addresses of the claim, the first 1,024 in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Addresses []string `json:"addresses,omitempty"`
	// ipPool is the first of the addresses with their prefix lengths, as in 10.0.0.8/24,10.0.0.9/24.
	// +optional
	IPPool string `json:"ipPool,omitempty"`
}

// BCSNetIPClaimList is a list of claims.
//
// +kubebuilder:object:root=true
type BCSNetIPClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BCSNetIPClaim `json:"items"`
}

// PoolNames returns the pools that the claim names, in the order in which they are tried; none for any.
func (s BCSNetIPClaimSpec) PoolNames() []string {
	if s.Pool == "" {
		return nil
	}
	return strings.FieldsFunc(s.Pool, func(r rune) bool { return r == ',' || r == ' ' })
}
