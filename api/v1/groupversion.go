package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of all objects here.
var GroupVersion = schema.GroupVersion{Group: "networkextension.bkbcs.tencent.com", Version: "v1"}

// Resources as they appear in request paths.
const (
	PoolResource  = "bcsnetpools"
	IPResource    = "bcsnetips"
	ClaimResource = "bcsnetipclaims"
	// HistoryResource has the history of the others.
	HistoryResource = "bcsnethistories"
)

// ChangedByAnnotation on a pool names the user who last changed its spec. The policy bcsnet-authors sets it, and
// overwrites what anybody else writes there; without that policy anybody can write it.
const ChangedByAnnotation = "networkextension.bkbcs.tencent.com/changed-by"

// RestoringAnnotation is on a pool that bcsnetctl restore made, until the addresses of the backup are there. Meanwhile
// the pool is cordoned, and the next bcsnetctl restore uncordons it.
const RestoringAnnotation = "networkextension.bkbcs.tencent.com/restoring"

// Finalizers.
const (
	// PoolFinalizer keeps a pool until its addresses are released.
	PoolFinalizer = "networkextension.bkbcs.tencent.com/pool"
	// ClaimFinalizer keeps a claim until no pod has an address of it.
	ClaimFinalizer = "networkextension.bkbcs.tencent.com/claim"
	// MigratingLabel is on a BCSNetIP for as long as it has a secondAttachment: it finds those few.
	MigratingLabel = "networkextension.bkbcs.tencent.com/migrating"
	// HeldFinalizer is on every BCSNetIP that is Active or Reserved; it is set and dropped in the
	// same write as the state, so that a deleted object never forgets its holder.
	HeldFinalizer = "networkextension.bkbcs.tencent.com/held"
)

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &BCSNetPool{}, &BCSNetPoolList{}, &BCSNetIP{}, &BCSNetIPList{}, &BCSNetIPClaim{},
		&BCSNetIPClaimList{}, &BCSNetHistory{}, &BCSNetHistoryList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
