package explain

// texts returns the message and the hint of a kind. What stands in braces is a fact.
func (k Kind) texts() (message, hint string) {
	switch {
	case k >= NoSuchClaim:
		return k.claimStopsIt()
	case k >= HostFull:
		return k.nothingLeft()
	case k >= NoPoolForClaim:
		return k.noPoolFits()
	case k >= AddressOfNode:
		return k.addressTaken()
	}
	return k.addressNotServed()
}

func (k Kind) addressNotServed() (message, hint string) {
	switch k {
	case AddressInNoPool:
		return "address {address} is in no pool", "see: bcsnetctl pool list"
	case AddressHasRole:
		return "address {address} is the {role} of pool {pool} ({subnet})", "ask for another address"
	case AddressExcluded:
		return "address {address} is among the excludeIPs of pool {pool} ({subnet})",
			"ask for another address; see the pool: bcsnetctl pool describe {pool}"
	case AddressNotListed:
		return "address {address} is not one of the addresses of pool {pool} ({subnet})",
			"add it with: bcsnetctl pool add-ip {pool} {address}"
	case AddressInOtherPool:
		return "address {address} is in pool {pool}, not in pool {other}", "ask for it there, or for another address"
	case AddressNotForHost:
		return "address {address} is in pool {pool}, which host {host} may not draw from",
			"add the host with: bcsnetctl pool add-host {whole} {host}"
	case AddressNotForNamespace:
		return "address {address} is in pool {pool}, which does not serve namespace {namespace}",
			"{bind}"
	case AddressNotOfNetwork:
		return "address {address} is in pool {pool}, which is not part of network {network}",
			"ask for another address or network"
	case AddressesOfTwoNetworks:
		return "address {address} of pool {pool} and address {beside} of pool {other} are not of one network",
			"ask for addresses of one network; see: bcsnetctl pool list -o wide"
	case AddressForWhoNamesPool:
		return "address {address} is in pool {pool}, which serves only requests that name it",
			"ask for pool {pool}, too"
	case AddressInNoBlock:
		return "address {address} of pool {pool} is in no block of namespace {namespace}, and the block {other} " +
			"cannot be given to it", "ask for an address of its own blocks; see: bcsnetctl pool tree"
	default: // AddressPoolStopped
		return "address {address} is in pool {pool}, which allocates nothing: it is {why}", "{cure}"
	}
}

func (k Kind) addressTaken() (message, hint string) {
	switch k {
	case AddressOfNode:
		return "address {address} of pool {pool} is the address of node {by}",
			"take it out of the pool: bcsnetctl pool remove-ip {pool} {address}"
	case AddressHeld:
		return "address {address} of pool {pool} is held by {by}",
			"ask for another address, or wait until it is released"
	case AddressKept:
		return "address {address} of pool {pool} is kept for claim {claim}",
			"ask for another address; see for whom: bcsnetctl ip describe {address}"
	case AddressReserved:
		return "address {address} of pool {pool} is reserved{by whom}{reasons}",
			"ask for another address; see by whom and why: bcsnetctl ip describe {address}"
	case AddressQuarantined:
		return "address {address} of pool {pool} is quarantined until {until}: {by} answered for it",
			"ask for another address; see who reported it: bcsnetctl ip describe {address}"
	case AddressBeingDeleted:
		return "the object of address {address} of pool {pool} is being deleted", "ask again in a moment"
	case AddressEmptied:
		return "address {address} of pool {pool} lost its record: it is free by its status, and has the finalizer of " +
			"an address in use", "ask for another address; see what to do: bcsnetctl doctor"
	case AddressMissing:
		return "the object of address {address} of pool {pool} was deleted while the address was in use ({by}); " +
			"it is being restored", "ask for another address, or again in a moment"
	case AddressBeingGiven:
		return "address {address} of pool {pool} is being given to another request", "ask again in a moment"
	case AddressCooling:
		return "address {address} of pool {pool} is cooling{after}: it is free in {in}",
			"ask for another address, or ask again in {in}"
	case AddressWithheld:
		return "address {address} is being carved out of pool {other} for pool {pool}, which does not allocate it yet",
			"ask for another address; see what it waits for: bcsnetctl pool describe {pool}"
	case AddressDraining:
		return "address {address} is {taken}, and pool {pool} no longer has it: it drains",
			"ask for another address; see: bcsnetctl ip describe {address}"
	case OwnAddressBeingGiven:
		return "address {address}, which is kept for {who}, is being given to another request", "ask again in a moment"
	default: // OwnAddressElsewhere
		return "address {address} is kept for {who} by claim {claim}, and cannot be given to it here: {because}",
			"let the pod run on a host of pool {pool}, or give the address up: bcsnetctl ip release {address}"
	}
}

func (k Kind) noPoolFits() (message, hint string) {
	switch k {
	case NoPoolForClaim:
		return "no pool that a host may draw from serves {served}",
			"name a pool in spec.pool of the claim; see: bcsnetctl pool list -o wide"
	case NoHostNamed:
		return "a request that names no host names an owner and a pool", ""
	case HostInNoPool:
		return "host {host} does not exist in pools", "add it with: bcsnetctl pool add-host POOL {host}"
	case HostNotForNamespace:
		return "none of the pools of host {host} serves namespace {namespace}: {pools}{only own}",
			"{bind}"
	case HostNotOfNetwork:
		return "no pool that host {host} may draw from for namespace {namespace} is part of network {network}",
			"set spec.network of a pool, or ask for another network"
	case NoSuchPool:
		return "there is no pool {pool}", "see: bcsnetctl pool list"
	case PoolNotForHost:
		return "host {host} may not draw from pool {pool}{nor subnets}{nor selector}",
			"add the host with: bcsnetctl pool add-host {whole} {host}"
	case PoolNotForNamespace:
		return "pool {pool} does not serve {served}", "{bind}"
	case PoolNotOfNetwork:
		return "pool {pool} is not part of network {network}", "ask for another pool or network"
	case NamespaceUnknown:
		return "{who} is given no address yet: which pools serve namespace {namespace} depends on its labels, " +
			"which this replica does not know", "ask again; see: kubectl get namespace {namespace} --show-labels"
	case FamilyMissing:
		return "{who} takes an address of {families}, which none of the pools that serve it has: {pools}",
			"ask for another of ipFamilies, or create a pool of that family: bcsnetctl pool create --help"
	case FamiliesApart:
		return "{who} requires {families}, and no network of the pools that serve it has both: {pools}",
			"make the pools of both families part of one network, spec.network; see: bcsnetctl pool list -o wide"
	case FamilyNotNamed:
		return "{who} takes an address of {families}, and its annotations or its claim name no address of that " +
				"family",
			"name addresses of that family, too, or ask for another ipFamilyPolicy"
	default: // PoolStopped
		return "pool {pool} allocates nothing: it is {why}", "{cure}"
	}
}

func (k Kind) nothingLeft() (message, hint string) {
	const (
		none       = "no available IP for {who}: "
		raiseLimit = "wait until a pod of the host ends, or raise the bound: bcsnetctl pool set {whole} " +
			"--max-per-host N"
		raiseQuota = "release what it keeps and does not need: bcsnetctl claim list -n {namespace}; " +
			"or raise its quota: bcsnetctl pool set {whole} --quota {namespace}=N"
		addRange = "add addresses: bcsnetctl pool add-ip {whole} RANGE"
	)
	switch k {
	case HostFull:
		return none + "host {host} has {has} of the {limit} addresses of pool {whole} that one host may have",
			raiseLimit
	case QuotaExceeded:
		return none + "namespace {namespace} has {has} of the {limit} addresses of pool {whole} that it may have",
			raiseQuota
	case KeepsTooMany:
		return none +
				"namespace {namespace} keeps {held} addresses of pool {whole} that no pod uses, and {limit} are " +
				"free: it cannot keep more",
			"release what it does not need: bcsnetctl claim list -n {namespace}; " +
				"or give it its own quota: bcsnetctl pool set {whole} --quota {namespace}=N"
	case ClaimFull:
		return none + "claim {claim} holds {held} of {limit} addresses{coming}, and none of them is free for it",
			"wait until a pod of the claim ends, or let it have more: bcsnetctl claim resize {claim} N"
	case StoreWasReset:
		return "{who} is given no new address for a while ({in} at least): the store of the API server was put back " +
			"to an older state, and other replicas may know who has which address", "ask again"
	case StoreIsCompared:
		return "{who} is given no new address yet: this replica has just started, and asks the others whether the " +
			"store of the API server was put back to an older state", "ask again"
	case ExhaustedByOverlap:
		return none + "{states}{own}",
			"leave the addresses to one of the pools: bcsnetctl pool remove-ip POOL ADDRESS...; " +
				"see: bcsnetctl pool describe {pool}"
	case ExhaustedByHost:
		return none + "{states}{own}", raiseLimit
	case ExhaustedByQuota:
		return none + "{states}{own}", raiseQuota
	case ExhaustedCooling:
		return none + "{states}{own}", "ask again in {in}, or " + addRange
	case ExhaustedTaken:
		return none + "{states}{own}", "{gone}see who holds them: bcsnetctl ip list --pool {pool}; " + addRange
	case ExhaustedPromised:
		return none + "{states}{own}; pods that were placed before will ask for those", addRange
	case ExhaustedStopped:
		return none + "{states}{own}", "{cure}"
	case RangesInNoPool:
		return none + "{ranges} is in no pool that serves {served}",
			"add the addresses to a pool: bcsnetctl pool add-ip POOL RANGE"
	case RangesHeld:
		return none + "none of the addresses of {ranges} that it does not have is free", "{see}"
	case RangesNotOnHost:
		return none + "{ranges} is in no pool that it may draw from on host {host} ({pools})",
			"add the addresses to a pool of the host, or let the pod run on a host of theirs; {see}"
	case RangesNotFree:
		return none + "none of the {size} addresses of {ranges} is free{on host}{reasons}", "{next}"
	case NoFreeBlock:
		return none + "{states}",
			"add addresses: bcsnetctl pool add-ip {pool} RANGE; see who has the blocks: bcsnetctl pool tree"
	case NoBlockByItself:
		return none + "{states}", "give it a block: bcsnetctl pool bind {pool} --namespace {namespace}"
	default: // RangeNotFree
		return none + "{because}", "{next}"
	}
}

func (k Kind) claimStopsIt() (message, hint string) {
	switch k {
	case NoSuchClaim:
		return "there is no claim {claim}, which {by} names",
			"create it: bcsnetctl claim create {claim name} -n {namespace}; or remove the annotation"
	case ConstraintsOnPool:
		return "the request is for pool {pool}, the terms of {who} are for pool {other}",
			"ask without a pool; see: bcsnetctl explain {pod}"
	case ConstraintsOnAddress:
		return "the request is for address {address}, the terms of {who} are for {ranges}",
			"ask without an address; " + NameInterface + "; see: bcsnetctl explain {pod}"
	case EarlierHolderIsNoPod:
		return "address {address}, which is kept for {who} by claim {claim}, is held by {by}",
			"release it when that has ended: bcsnetctl ip release {address}"
	case EarlierPodIsThere:
		return "address {address} is kept for key {key} of claim {claim}, and its earlier pod {by}, which {because}, " +
				"still has it",
			"it is given to {who} once that pod is gone; " +
				"if its node is lost for good: kubectl delete pod -n {namespace} {pod name} --force"
	case EarlierPodMayRun:
		return "address {address} is kept for key {key} of claim {claim}; its earlier pod {by} is gone, " +
				"and its containers may run for another {left}",
			"it is given to {who} then, or when the plugin has released it; " +
				"if the machine is off: bcsnetctl release-host {host}"
	case MigrationDenied:
		return "address {address} of claim {claim} is held by {by}, and {who} gets it only when the virtual machine " +
				"migrates to it: {because}",
			"ask again: KubeVirt may not have written it down yet; see: kubectl get vmi,vmim -n {namespace}"
	case MigrationOff:
		return "address {address} of claim {claim} is held by {by}, and no second pod of the virtual machine gets it " +
				"at present: {because}",
			"migrate once all replicas and CRDs are of this release, or restart the virtual machine; see: bcsnetctl " +
				"version"
	default: // EarlierPodIsEnding
		return "{who} is to get the address of an earlier pod of claim {claim}: {pod}, which was deleted, still has it",
			"it gets that address once {pod name} has ended, or another one at {until}, " +
				"or before that if others wait for all that are ending"
	}
}
