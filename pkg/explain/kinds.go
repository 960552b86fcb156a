package explain

// Kind is why a request gets nothing. Each kind has one message and one hint. The kinds come in blocks, and the block
// decides which function puts a kind into words (texts.go): add a new one to the block where it belongs.
type Kind uint8

// Kinds of one address that was asked for, or is kept: its pool does not have it or does not give it.
const (
	AddressInNoPool Kind = iota + 1
	AddressHasRole
	AddressExcluded
	AddressNotListed
	AddressInOtherPool
	AddressNotForHost
	AddressNotForNamespace
	AddressNotOfNetwork
	AddressesOfTwoNetworks
	AddressForWhoNamesPool
	AddressPoolStopped
	AddressInNoBlock
)

// Kinds of one address that somebody has, or that cannot be had at present.
const (
	AddressOfNode Kind = iota + 40
	AddressHeld
	AddressKept
	AddressReserved
	AddressQuarantined
	AddressBeingDeleted
	AddressEmptied
	AddressMissing
	AddressBeingGiven
	AddressCooling
	AddressWithheld
	AddressDraining
	OwnAddressBeingGiven
	OwnAddressElsewhere
)

// Kinds of a request that no pool fits.
const (
	NoPoolForClaim Kind = iota + 80
	NoHostNamed
	HostInNoPool
	HostNotForNamespace
	HostNotOfNetwork
	NoSuchPool
	PoolNotForHost
	PoolNotForNamespace
	PoolNotOfNetwork
	NamespaceUnknown
	FamilyMissing
	FamiliesApart
	FamilyNotNamed
	PoolStopped
)

// Kinds of a request that has as much as it may have, or for which nothing is left.
const (
	HostFull Kind = iota + 120
	QuotaExceeded
	ClaimFull
	StoreWasReset
	ExhaustedByOverlap
	ExhaustedByHost
	ExhaustedByQuota
	ExhaustedCooling
	ExhaustedTaken
	ExhaustedPromised
	ExhaustedStopped
	RangesInNoPool
	RangesHeld
	RangesNotOnHost
	RangesNotFree
	RangeNotFree
	NoFreeBlock
	NoBlockByItself
	KeepsTooMany
	StoreIsCompared
)

// Kinds of a request that contradicts its claim, or that waits for an earlier holder of its claim's address.
const (
	NoSuchClaim Kind = iota + 160
	ConstraintsOnPool
	ConstraintsOnAddress
	EarlierHolderIsNoPod
	EarlierPodIsThere
	EarlierPodMayRun
	EarlierPodIsEnding
	MigrationDenied
	MigrationOff
)

// NameInterface is the part of a hint for a request with an address that an annotation of the pod is against.
const NameInterface = "an annotation for another interface names that in its key, as in " +
	"networkextension.bkbcs.tencent.com/ip.eth0"
