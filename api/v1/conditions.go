package v1

// Condition types of a BCSNetPool.
const (
	// ConditionReady: hosts can draw addresses from the pool.
	ConditionReady = "Ready"
	// ConditionExhausted: no address of the pool can be allocated at present.
	ConditionExhausted = "Exhausted"
	// ConditionOverlap: addresses of the pool are also in another pool.
	ConditionOverlap = "Overlap"
	// ConditionDraining: addresses that are no longer in the pool, or whose pool is being deleted,
	// are still in use.
	ConditionDraining = "Draining"
	// ConditionCollectionPaused: addresses of pods that are gone are not taken back, because there are too many
	// at once. The condition is there once that has happened.
	ConditionCollectionPaused = "CollectionPaused"
	// ConditionQuotaNearlyReached: namespaces have four of five addresses of the pool that they may have, or more. Like
	// OverLimit the condition is there once the pool has had quotas.
	ConditionQuotaNearlyReached = "QuotaNearlyReached"
)

// Condition types of a BCSNetIPClaim, beside Ready. OverLimit is one of a pool, too.
const (
	// ConditionOverLimit: the claim has more addresses than it may, or of a pool a namespace; none is taken from a pod
	// that runs.
	ConditionOverLimit = "OverLimit"
	// ConditionPreallocated: the claim has all the addresses that it is to have before pods ask for them. The condition
	// is there while the spec says preallocate.
	ConditionPreallocated = "Preallocated"
	// ConditionConflict: the claim cannot have what its spec says, whatever its pods do; the message names who or what
	// is in the way.
	ConditionConflict = "Conflict"
)

// Reasons of the condition Ready of a BCSNetIPClaim.
const (
	// ReasonBound: pods get addresses of the claim.
	ReasonBound = "Bound"
	// ReasonClaimReleasing: the claim is being deleted and waits for the pods that have its addresses.
	ReasonClaimReleasing = "Releasing"
)

// Reasons of the condition OverLimit.
const (
	ReasonWithinLimit = "WithinLimit"
	ReasonTooMany     = "TooMany"
)

// Reasons of the condition QuotaNearlyReached. The first is also that of the event of each namespace.
const (
	ReasonQuotaNearlyReached = "QuotaNearlyReached"
	ReasonQuotasLeft         = "QuotasLeft"
)

// Reasons of the condition Conflict, beside AddressNotInPool and AddressInUse: those of refusals.
const (
	ReasonNoConflict = "NoConflict"
	// ReasonOwnerShared: another claim is for the same workload.
	ReasonOwnerShared = "OwnerShared"
	// ReasonOwnerControlled: the owner that the claim names belongs to another workload, by which its pods find their
	// claims.
	ReasonOwnerControlled = "OwnerControlled"
	// ReasonSharedNameElsewhere: pods find the shared pool of the claim's sharedName in another claim.
	ReasonSharedNameElsewhere = "SharedNameElsewhere"
	// ReasonAddressesShared: another claim names the same addresses.
	ReasonAddressesShared = "AddressesShared"
	// ReasonLargerThanPools: the claim may have more addresses than its pools, or the addresses that it names, are.
	ReasonLargerThanPools = "LargerThanPools"
	// ReasonPoolNotFound: there is no pool of the name that the claim says.
	ReasonPoolNotFound = "PoolNotFound"
)

// Reasons of the condition Preallocated, beside those of refusals: why addresses are missing.
const (
	ReasonComplete = "Complete"
	// ReasonTaking: the claim is taking its addresses; there are enough so far.
	ReasonTaking = "Taking"
)

// Reasons of the condition Ready. Of a pool that is ready, it is ReasonReady, or the condition that Notable names.
const (
	ReasonReady          = "Ready"
	ReasonInvalidSpec    = "InvalidSpec"
	ReasonNoAddresses    = "NoAddresses"
	ReasonNoHosts        = "NoHosts"
	ReasonCordoned       = "Cordoned"
	ReasonTerminating    = "Terminating"
	ReasonObjectsFailing = "ObjectsFailing"
	ReasonRebuilding     = "Rebuilding"
	// ReasonInvalidParent: the pool does not fit the parent that it names, or the parent's other children.
	ReasonInvalidParent = "InvalidParent"
	// ReasonCarving: the pool's addresses are still being carved out of its parent; or the pool got its blockSize while
	// it served, and its addresses are not its blocks' yet.
	ReasonCarving = "Carving"
)

// Reasons of events about a pool, beside those of its conditions.
const (
	// ReasonAddressRestored: the object of an address was deleted while the address was in use, and made again.
	ReasonAddressRestored = "AddressRestored"
)

// Reasons of events about the ConfigMap that pools are kept from.
const (
	// ReasonFloatingIPConfigApplied: pools were made, changed, cordoned or deleted as it says.
	ReasonFloatingIPConfigApplied = "FloatingIPConfigApplied"
	// ReasonFloatingIPConfigRefused: it cannot be read or is wrong; the pools stay as the last good one said.
	ReasonFloatingIPConfigRefused = "FloatingIPConfigRefused"
	// ReasonFloatingIPConfigFailed: it is good, and a pool could not be written.
	ReasonFloatingIPConfigFailed = "FloatingIPConfigFailed"
)

// Reasons of events about the ConfigMap that says which namespace has which blocks.
const (
	// ReasonHostnicConfigApplied: blocks were made, changed, cordoned or deleted as it says.
	ReasonHostnicConfigApplied = "HostnicConfigApplied"
	// ReasonHostnicConfigRefused: it cannot be read or is wrong; the blocks stay as the last good one said.
	ReasonHostnicConfigRefused = "HostnicConfigRefused"
	// ReasonHostnicConfigFailed: it is good, and a block could not be written.
	ReasonHostnicConfigFailed = "HostnicConfigFailed"
	// ReasonHostnicConfigDiffers: it is good, and pools, other namespaces or leases are in the way of some of it.
	ReasonHostnicConfigDiffers = "HostnicConfigDiffers"
)

// Reasons of the condition Exhausted.
const (
	ReasonAddressesFree   = "AddressesFree"
	ReasonNoAddressesFree = "NoAddressesFree"
)

// Reasons of the condition Overlap.
const (
	ReasonNoOverlap   = "NoOverlap"
	ReasonSharedOwned = "OverlapServedHere"
	ReasonSharedLost  = "OverlapServedElsewhere"
)

// Reasons of the condition Draining.
const (
	ReasonNothingToDrain  = "NothingToDrain"
	ReasonAddressesRetire = "AddressesRetired"
	ReasonPoolDeleted     = "PoolDeleted"
)

// Reasons of the condition CollectionPaused.
const (
	ReasonTooManyAtOnce = "TooManyAtOnce"
	ReasonCollecting    = "Collecting"
)

// Reasons of events on a pool, or on a claim, about one address of it.
const (
	ReasonAddressCollected = "AddressCollected"
	ReasonAddressFreed     = "AddressFreed"
	// ReasonAddressConflict: a container found somebody else answering for the address that it was given.
	ReasonAddressConflict = "AddressConflict"
	// ReasonQuarantineEnded: the address was quarantined after a conflict, and may be allocated again.
	ReasonQuarantineEnded = "QuarantineEnded"
)

// Reasons of events on a pod, beside those of refusals.
const (
	// ReasonClaimNotMade: the API server refuses the claim that the pod's annotations ask for.
	ReasonClaimNotMade = "ClaimNotMade"
)
