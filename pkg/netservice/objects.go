package netservice

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources of the released program.
const (
	PoolResource  = "bcsnetpools"
	IPResource    = "bcsnetips"
	ClaimResource = "bcsnetipclaims"
)

// GroupVersion returns the group and version of the released program's objects.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "netservice.bkbcs.tencent.com", Version: "v1"}
}

// Phases of addresses and claims, as the released program writes them.
const (
	phaseActive    = "Active"
	phaseReserved  = "Reserved"
	phaseAvailable = "Available"
	phaseExpired   = "Expired"
)

// Pool is a BCSNetPool of the released program.
type Pool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Net          string   `json:"net"`
		Mask         int32    `json:"mask"`
		Gateway      string   `json:"gateway"`
		Hosts        []string `json:"hosts,omitempty"`
		AvailableIPs []string `json:"availableIPs,omitempty"`
	} `json:"spec"`
}

// IP is a BCSNetIP of the released program; its name is the address.
type IP struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		// Phase is called status in the earliest releases.
		Phase        string `json:"phase,omitempty"`
		Status       string `json:"status,omitempty"`
		Host         string `json:"host,omitempty"`
		ContainerID  string `json:"containerID,omitempty"`
		IPClaimKey   string `json:"ipClaimKey,omitempty"`
		PodName      string `json:"podName,omitempty"`
		PodNamespace string `json:"podNamespace,omitempty"`
		UpdateTime   string `json:"updateTime,omitempty"`
		KeepDuration string `json:"keepDuration,omitempty"`
	} `json:"status"`
}

// Claim is a BCSNetIPClaim of the released program.
type Claim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		BCSNetIPName    string `json:"bcsNetIPName,omitempty"`
		ExpiredDuration string `json:"expiredDuration,omitempty"`
	} `json:"spec"`
	Status struct {
		BoundedIP string `json:"boundedIP,omitempty"`
		Phase     string `json:"phase,omitempty"`
	} `json:"status"`
}

// Read converts objects as the API server has them.
func Read[T any](items []unstructured.Unstructured) ([]T, error) {
	out := make([]T, len(items))
	for i := range items {
		o := &items[i]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out[i]); err != nil {
			return nil, fmt.Errorf("%s %s of %s cannot be read: %w", o.GetKind(), o.GetName(), o.GetAPIVersion(), err)
		}
	}
	return out, nil
}

// phase returns the phase that the released program gave the address.
func (ip IP) phase() string { return cmp.Or(ip.Status.Phase, ip.Status.Status, phaseAvailable) }

// pod returns namespace/name of the pod that has the address.
func (ip IP) pod() string { return ip.Status.PodNamespace + "/" + ip.Status.PodName }

// updated returns when the released program last changed the address; zero where the object does not have it.
func (ip IP) updated() time.Time {
	at, _ := time.Parse(time.RFC3339, ip.Status.UpdateTime)
	return at
}

// key returns namespace/name of the claim.
func (c Claim) key() string { return c.Namespace + "/" + c.Name }
