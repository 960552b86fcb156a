package doctor

import (
	"slices"
	"strconv"

	"github.com/bcsnet/bcsnet/pkg/hosts"
)

// Checks returns all checks, in display order.
func Checks() []Check {
	return slices.Concat(installChecks(), poolChecks(), leakChecks(), addressChecks(), claimChecks(), hostChecks())
}

func installChecks() []Check {
	crds, controller := []Part{PartCRDs}, []Part{PartController}
	return []Check{{
		ID: "crds-missing", Group: GroupInstall, Severity: Error, Needs: crds, run: crdsMissing,
		Title:   "a CustomResourceDefinition is not installed",
		Meaning: "The cluster lacks one of the kinds in which bcsnet stores its state.",
		Impact:  "nothing of bcsnet works",
		Remedy:  "Install the manifests of this release.",
	}, {
		ID: "crds-not-served", Group: GroupInstall, Severity: Error, Needs: crds, run: crdsNotServed,
		Title: "a CustomResourceDefinition is not served, or is being deleted",
		Meaning: "The definition is being deleted, its names belong to another one, its version is not served, " +
			"or objects may be stored in a version that this release lacks.",
		Impact: "with a definition all of its objects go; without a served version nothing of bcsnet works",
		Remedy: "Back up the remaining objects: `bcsnetctl backup FILE`. A deletion cannot be undone: " +
			"afterwards install the manifests of this release and import. If two definitions have the same " +
			"names, delete one.",
	}, {
		ID: "crds-outdated", Group: GroupInstall, Severity: Warning, Needs: crds, run: crdsOutdated,
		Title: "a CustomResourceDefinition is not of this release",
		Meaning: "The definition in the cluster lacks or changes something of this program's definition. " +
			"Additions of a newer release are not findings.",
		Impact: "fields of this release are dropped when they are written, and its rules are not enforced",
		Remedy: "Install the manifests of this release; objects stay. If the cluster is newer, update this " +
			"program.",
	}, {
		ID: "no-controller", Group: GroupInstall, Severity: Error, Needs: controller, run: noController,
		Title: "no controller runs",
		Meaning: "No pod of the controller in the namespace `" + ControllerNamespace +
			"` is ready, and nobody renews the leader's Lease there: " +
			"a controller that runs outside the cluster shows by the latter.",
		Impact: "pods get no address when no replica answers, and pools are not reconciled",
		Remedy: "Find out why its pods do not run, or install the manifests.",
	}, {
		ID: "no-leader", Group: GroupInstall, Severity: Warning, Needs: controller, run: noLeader,
		Title: "controllers run, and none leads",
		Meaning: "Pods of the controller are ready, but nobody holds the Lease `" + ControllerNamespace + "/" +
			ControllerName + "`. " +
			"With `--leader-elect=false` that is as it should be: skip the check.",
		Impact: "requests are answered, but pools are not reconciled",
		Remedy: "See the controller's log for why it cannot take the Lease; usually a right is missing.",
	}, {
		ID: "leader-stale", Group: GroupInstall, Severity: Warning, Needs: controller, run: leaderStale,
		Title: "the leader has not been heard of",
		Meaning: "The holder of the Lease has not renewed it for twice its term, and no other controller has " +
			"taken it over.",
		Impact: "requests are answered, but pools are not reconciled",
		Remedy: "See the controller's log; delete a replica that hangs.",
	}, {
		ID: "plain-http-callers", Group: GroupInstall, Severity: Warning, Needs: []Part{PartPlain}, run: plainCallers,
		Title: "a machine calls the controller by plain HTTP",
		Meaning: "The controller answered the machine by plain HTTP within a day, as `--plain-http` allows. " +
			"Pages such as `/metrics` count, and so do questions of schedulers, which only addresses of Nodes " +
			"may ask.",
		Impact: "whoever is on the way reads and changes what it asks; without `--plain-http` it would be refused",
		Remedy: "Install the CNI plugins of this release on the node, or let the program use HTTPS. Remove the " +
			"flag when `plain-http-unused` is found.",
	}, {
		ID: "plain-http-unused", Group: GroupInstall, Severity: Info, Needs: []Part{PartPlain}, run: plainUnused,
		Title: "plain HTTP is answered, and nobody needs it",
		Meaning: "The controller runs with `--plain-http`, has recorded callers for at least 24 hours, and " +
			"there was none.",
		Impact: "any machine of the network may ask for itself, and any node as a scheduler",
		Remedy: "Switch it off: `bcsnetctl upgrade --plain-http=false`, or what Helm installed by " +
			"`helm upgrade … --reset-then-reuse-values --set plainHTTP=false`; otherwise write the argument " +
			"`--plain-http=false` into the Deployment.",
	}}
}

func poolChecks() []Check {
	pools, leases := []Part{PartPools}, []Part{PartPools, PartAddresses}
	nodes := []Part{PartPools, PartAddresses, PartNodes}
	return []Check{{
		ID: "pool-invalid", Group: GroupPools, Severity: Error, Needs: pools, run: eachPool(poolInvalid),
		Title: "the spec of a pool cannot be used",
		Meaning: "The pool passes the API server's rules, but its addresses contradict each other; see the " +
			"cause.",
		Impact: "the pool allocates nothing; addresses in use stay",
		Remedy: "Correct the field in the cause.",
	}, {
		ID: "group-invalid", Group: GroupPools, Severity: Error, Needs: pools, run: eachPool(groupInvalid),
		Title: "a group does not fit its parent",
		Meaning: "The parent of the pool does not exist, is being deleted, or lacks the pool's addresses; or " +
			"another child has them. Blocks are children, too.",
		Impact: "the group allocates nothing, and its parent keeps the addresses; addresses in use stay",
		Remedy: "Create the parent, or correct the group's addresses. A parent that is being deleted waits for " +
			"its children.",
	}, {
		ID: "group-stuck", Group: GroupPools, Severity: Warning, Needs: leases, run: eachPool(groupStuck),
		Title: "a group does not get its addresses from its parent",
		Meaning: "Somebody else has held an address of the group's range for five minutes, or the group has " +
			"waited that long for another reason. Cooling and reserved addresses do not count.",
		Impact: "neither the group nor its parent allocates the waiting addresses",
		Remedy: "Release the addresses in the cause, or remove them from the group: `bcsnetctl pool remove-ip " +
			"GROUP ADDRESS`.",
	}, {
		ID: "pool-not-ready", Group: GroupPools, Severity: Warning, Needs: pools, run: eachPool(poolNotReady),
		Title: "a pool allocates nothing",
		Meaning: "The pool has no address or no host, its objects cannot be written, or no controller has " +
			"handled it within a minute. Cordoned pools are not findings.",
		Impact: "nobody gets an address from the pool",
		Remedy: "Add what is missing.",
	}, {
		ID: "pool-exhausted", Group: GroupPools, Severity: Error, Needs: leases, Wants: []Part{PartPods, PartNodes},
		run:   eachPool(poolExhausted),
		Title: "a pool has no free address",
		Meaning: "Every address of the pool is in use, reserved, or a node's own. Pools that are cordoned or " +
			"being deleted do not count.",
		Impact: "new pods that only this pool serves do not start",
		Remedy: "Add addresses to the pool, or look for leaks: `bcsnetctl doctor --only leaks`.",
	}, {
		ID: "pool-near-exhaustion", Group: GroupPools, Severity: Warning, Needs: leases,
		run:     eachPool(poolNearExhaustion),
		Title:   "a pool is nearly full",
		Meaning: "At least 90 % of the addresses of the pool are in use or reserved.",
		Impact:  "soon new pods will not start",
		Remedy:  "Add addresses to the pool in time.",
	}, {
		ID: "pool-shadowed", Group: GroupPools, Severity: Warning, Needs: pools, Wants: []Part{PartNodes},
		run:   poolsShadowed,
		Title: "a pool of the default chain serves nobody",
		Meaning: "On each of its hosts a pool with `autoAssign` gives every namespace its own blocks, and a " +
			"namespace then draws only from these. A pool with other hosts, too, is not a finding.",
		Impact: "nobody gets an address of the pool without naming it",
		Remedy: "Give the pool other hosts, bind it to its namespaces, or bind the pool with `autoAssign` to " +
			"the namespaces that should have blocks.",
	}, {
		ID: "namespace-cut-off", Group: GroupPools, Severity: Warning, Needs: leases, Wants: []Part{PartNodes},
		run:   namespacesCutOff,
		Title: "a namespace has addresses on a host that no longer serves it",
		Meaning: "Pods of the namespace have addresses on the host, and no pool of the host serves the " +
			"namespace. Pods that name a pool or network do not count, nor do namespaces that a pool's selector " +
			"may match.",
		Impact: "addresses in use stay; new pods of the namespace on the host are refused with `NamespaceNotServed`",
		Remedy: "Let the host draw from a pool of the namespace, or remove the binding that keeps the " +
			"namespace out of the default chain: `bcsnetctl explain namespace NAMESPACE`.",
	}, {
		ID: "namespace-keeps-too-many", Group: GroupPools, Severity: Warning, Needs: leases, run: keepTooMany,
		Title: "a namespace keeps more of a pool, unused, than the pool has free",
		Meaning: "Claims keep the addresses for pods of the namespace that have ended, for example by the " +
			"policy `never`. Bound pools do not count, nor do namespaces with a quota.",
		Impact: "other namespaces run out of addresses; this namespace cannot keep more addresses of the pool",
		Remedy: "Release surplus addresses: `bcsnetctl ip release ADDRESS`. If the namespace may have so many, " +
			"give it a quota of the pool (`spec.quotas`) or its own pool.",
	}, {
		ID: "pool-overlap", Group: GroupPools, Severity: Warning, Needs: pools, Wants: []Part{PartAddresses},
		run:     poolOverlap,
		Title:   "two pools have the same addresses",
		Meaning: "Both pools list the addresses. One of them allocates them; its condition Overlap says which.",
		Impact:  "the other pool has fewer addresses than its spec says",
		Remedy: "Remove the shared addresses from one of the two. The command names the pool that does not " +
			"allocate them, and the first shared range.",
	}, {
		ID: "pool-overlaps-service-network", Group: GroupPools, Severity: Error, Needs: []Part{PartPools, PartServices},
		run:     poolOverlapsServices,
		Title:   "a pool has addresses of the Service network",
		Meaning: "Addresses of the pool lie in a ServiceCIDR of the cluster.",
		Impact:  "a pod with such an address cannot be reached from nodes where a Service has the same one",
		Remedy:  "Remove them from the pool.",
	}, {
		ID: "node-address-held", Group: GroupPools, Severity: Error, Needs: nodes, run: nodesInPools(true),
		Title:   "a node and a pod have the same address",
		Meaning: "An address of the pool is in use although it belongs to a Node, usually one that joined later.",
		Impact:  "two machines on one network answer for one address",
		Remedy:  "Remove the address from the pool, then recreate the pod.",
	}, {
		ID: "node-address-in-pool", Group: GroupPools, Severity: Info, Needs: nodes, run: nodesInPools(false),
		Title: "a pool has the address of a node",
		Meaning: "An address of the pool belongs to a Node. A pool inside the nodes' subnet is normal; only " +
			"such addresses are findings.",
		Impact: "none: the address is never allocated; the pool has one fewer than its spec says",
		Remedy: "Remove the address from the pool to correct its counts.",
	}, {
		ID: "stuck-deletion", Group: GroupPools, Severity: Warning, Needs: leases, run: stuckDeletions,
		Title: "a deletion does not end",
		Meaning: "A pool was deleted more than five minutes ago and still exists, for example because it waits " +
			"for its children; or somebody has deleted the object of an address that is held or has a foreign " +
			"finalizer.",
		Impact: "a deleted pool allocates nothing, and such an address is not allocated again before its object is " +
			"gone",
		Remedy: "Release what the cause names.",
	}}
}

func leakChecks() []Check {
	parts, nodes := []Part{PartAddresses, PartPods}, []Part{PartNodes}
	const lost = "the address is lost to its pool until it is released"
	return []Check{{
		ID: LeakPodGone, Group: GroupLeaks, Severity: Error, Needs: parts, Wants: nodes, run: leak(LeakPodGone),
		Title:   "an address is held for a pod that does not exist",
		Meaning: "No pod has the holder's name.",
		Impact:  lost, Remedy: remedyLeak,
	}, {
		ID: LeakPodEnded, Group: GroupLeaks, Severity: Error, Needs: parts, Wants: nodes, run: leak(LeakPodEnded),
		Title:   "an address is held for a pod that has ended",
		Meaning: "The pod has been Succeeded or Failed for more than a minute.",
		Impact:  lost, Remedy: remedyLeak,
	}, {
		ID: LeakPodReplaced, Group: GroupLeaks, Severity: Error, Needs: parts, Wants: nodes, run: leak(LeakPodReplaced),
		Title: "an address is held for an earlier pod of the same name",
		Meaning: "The pod of the holder's name has another UID, for example because a StatefulSet recreated it, and " +
			"does not report the address. Also, the lease is older than the pod, a later container of its name has " +
			"another address, or the pod has reported only other addresses for five minutes.",
		Impact: lost, Remedy: remedyLeak,
	}, {
		ID: LeakPodOtherAddress, Group: GroupLeaks, Severity: Warning, Needs: parts, Wants: nodes,
		run:   leak(LeakPodOtherAddress),
		Title: "an address is held for a pod that has another",
		Meaning: "The pod runs and reports addresses, but not this one. For pods with several networks, the " +
			"annotation `k8s.v1.cni.cncf.io/network-status` counts, too; without it, only the lease of `eth0` is " +
			"checked.",
		Impact: lost,
		Remedy: "Release the address by hand if no interface of the pod has it: `bcsnetctl ip release ADDRESS " +
			"--force`. `--fix` does not, because the status may lack interfaces.",
	}}
}

const remedyLeak = "`bcsnetctl doctor --fix` releases it."

func addressChecks() []Check {
	leases := []Part{PartPools, PartAddresses}
	return []Check{{
		ID: "pod-without-lease", Group: GroupAddresses, Severity: Error, Needs: []Part{PartPools, PartAddresses,
			PartPods},
		run:   podsWithoutLease,
		Title: "a pod has an address of a pool without holding it",
		Meaning: "A running pod reports an address of a pool that is free, reserved, or held by somebody else. " +
			"Pods on the host's network do not count.",
		Impact: "the address is allocated a second time, or has been",
		Remedy: "Remove the address from the pool, so that nobody gets it, or recreate the pod, so that it " +
			"gets another one.",
	}, {
		ID: "lease-emptied", Group: GroupAddresses, Severity: Error, Needs: leases, run: leasesEmptied,
		Title: "an address was made free by hand",
		Meaning: "The object of the address says that it is free, but has a finalizer, holder or claim. " +
			"Somebody has emptied its status, for example by kubectl edit, while no controller ran that " +
			"remembers the lease: a running one writes it again at once.",
		Impact: "somebody may have the address; with the finalizer nobody else gets it, without it anybody may",
		Remedy: "If a running pod reports the address, `bcsnetctl rebuild` creates the lease again. Otherwise " +
			"find its owner and give it back (`bcsnetctl ip allocate`), or reserve it (`bcsnetctl ip reserve`).",
	}, {
		ID: "lease-without-pool", Group: GroupAddresses, Severity: Warning, Needs: leases, run: leasesWithoutPool,
		Title: "an address is held, and its pool does not exist",
		Meaning: "The object of the address names a pool that does not exist, for example after a partial " +
			"restore.",
		Impact: "the holder keeps the address; nobody gets it afterwards",
		Remedy: "Create the pool again from its manifest; it has the address again at once.",
	}, {
		ID: "lease-draining", Group: GroupAddresses, Severity: Info, Needs: leases, run: leasesDraining,
		Title:   "an address in use was taken out of its pool",
		Meaning: "The pool no longer lists the address, for example after `pool remove-ip`.",
		Impact:  "none: the holder keeps the address, and nobody gets it afterwards",
		Remedy:  "Nothing, or recreate the pod to finish at once.",
	}, {
		ID: "lease-outdated", Group: GroupAddresses, Severity: Warning, Needs: leases, run: leasesOutdated,
		Title: "pods run with other settings than their pool has",
		Meaning: "The gateway, VLAN, MTU, routes or DNS of the pool have changed since the pods were given theirs. A " +
			"gateway that a host or an annotation named does not count, and neither do leases whose settings are " +
			"unknown: leases of an earlier release, of owners without a container, and leases that were created " +
			"again from the reports of pods.",
		Impact: "the pods keep their settings until they end, and these may no longer fit the network",
		Remedy: "Recreate the pods that the command lists, for example with `kubectl rollout restart`, or change the " +
			"pool back.",
	}, {
		ID: "lease-two-pods", Group: GroupAddresses, Severity: Warning, Needs: []Part{PartAddresses},
		run:   leasesOfTwoPods,
		Title: "a virtual machine has had its address in two pods for long",
		Meaning: "The machine has been migrating live for more than an hour, or its migration has ended and one " +
			"of its pods has not. KubeVirt's migration says nothing about containers, so bcsnet ends neither " +
			"half. The checks of leaks find pods that are gone.",
		Impact: "none while one of the pods has the machine; until one ends it cannot migrate again",
		Remedy: "See `kubectl get vmi,vmim`. Cancel the migration that hangs, or delete the pod without the " +
			"machine.",
	}, {
		ID: "proxy-arp", Group: GroupAddresses, Severity: Error, Needs: leases, run: proxyARP,
		Title: "somebody answers for many addresses",
		Meaning: "One MAC answered probes for three addresses within an hour, as a router with proxy ARP does; " +
			"or a hundredth of a pool, at least three addresses, was quarantined within an hour.",
		Impact: "no further address is quarantined: what a container finds taken is free again at once, and its ADD " +
			"fails",
		Remedy: "Find the MAC in the network and turn off proxy ARP there (or exclude the pool's range), or " +
			"turn off the probe in the conflist.",
	}, {
		ID: "address-quarantined", Group: GroupAddresses, Severity: Warning, Needs: leases, run: addressesQuarantined,
		Title: "somebody else answers for a pool's address",
		Meaning: "A container got the address and found another MAC that answers for it. Nobody gets the " +
			"address for an hour, and twice as long after each further report, at most 24 hours.",
		Impact: "the pool has one address fewer until then",
		Remedy: "Find the MAC in the network. Remove the address from the pool if it belongs to that machine, " +
			"or end the quarantine once it is free: `bcsnetctl ip release ADDRESS`.",
	}}
}

func hostChecks() []Check {
	nodes := []Part{PartPools, PartNodes}
	all := []Part{PartPools, PartAddresses, PartNodes}
	return []Check{{
		ID: "host-gone", Group: GroupHosts, Severity: Warning, Needs: all, run: hostsGone(true),
		Title:   "addresses are in use on a host that is not a node",
		Meaning: "No Node has the host's IP, but addresses are held on it.",
		Impact:  "the addresses are lost to their pools if the machine is off",
		Remedy:  "If the machine is off for good: `bcsnetctl release-host HOST`.",
	}, {
		ID: "host-in-no-pool", Group: GroupHosts, Severity: Warning, Needs: []Part{PartPools, PartAddresses},
		Wants: []Part{PartNodes}, run: hostsInNoPool,
		Title: "addresses are in use on a host that no pool lists",
		Meaning: "The host was removed from its pools, or its pool is gone, while pods on it hold addresses. " +
			"`host-gone` covers hosts without a node.",
		Impact: "pods that start on the host get no address",
		Remedy: "Add the host to a pool, or drain the node.",
	}, {
		ID: "duplicate-host", Group: GroupHosts, Severity: Warning, Needs: []Part{PartNodes}, run: duplicateHosts,
		Title: "two nodes have the same IP",
		Meaning: "More than one Node reports the address, most often because one was left behind when a machine was " +
			"set up anew. Or the annotation `" + hosts.Annotation + "` gives it to two Nodes, or to one " +
			"while it is another's.",
		Impact: "it is unclear which node an address in use belongs to; by an annotation none acts for it",
		Remedy: "Delete the Node whose machine no longer exists. Remove the annotation from the wrong Node; if " +
			"no operator set it, somebody on that node did.",
	}, {
		ID: "host-addresses-invalid", Group: GroupHosts, Severity: Warning, Needs: []Part{PartNodes},
		run:   unreadAddresses,
		Title: "an annotation of a node has a value that is not an address",
		Meaning: "A part of the annotation `" + hosts.Annotation + "` is not an IP. The other parts count. Or the " +
			"Node's status has more addresses than count (" + strconv.Itoa(hosts.MostOfStatus) + ").",
		Impact: "the node does not act for the address that was meant, and an address in use on it counts for no " +
			"node",
		Remedy: "Write single IPs with commas between.",
	}, {
		ID: "node-foreign-conflist", Group: GroupHosts, Severity: Warning, Needs: []Part{PartNodes},
		run:   foreignConflists,
		Title: "a node's runtime goes by another network configuration",
		Meaning: "In the directory of network configurations a file that is not of bcsnet sorts before its conflist, " +
			"and a runtime takes the first. The node side says so by the Node's condition `BcsnetReady`. Multus, and " +
			"files that name bcsnet's plugins, are not findings.",
		Impact: "pods that start on the node get no address from bcsnet; those that run keep theirs",
		Remedy: "Remove the file, with the program that writes it, or give bcsnet's conflist an earlier name " +
			"(`--conflist-name`, value `node.conflistName`). If the other network is meant to come first, install " +
			"without a conflist: `config/node-multus`.",
	}, {
		ID: "host-not-a-node", Group: GroupHosts, Severity: Info, Needs: all, run: hostsGone(false),
		Title: "a pool lists a host that is not a node",
		Meaning: "No Node has the host's IP, and nothing is in use on it. Clusters without Nodes are not " +
			"checked.",
		Impact: "none, unless the IP is misspelt",
		Remedy: "Remove the host from the pool, or correct it.",
	}, {
		ID: "host-subnet-empty", Group: GroupHosts, Severity: Info, Needs: nodes, run: emptyHostSubnets,
		Title:   "no node lies in a host subnet",
		Meaning: "No Node is in a subnet of the pool's `hostSubnets`. Clusters without Nodes are not checked.",
		Impact:  "none, unless the subnet is misspelt",
		Remedy:  "Remove the subnet from the pool, or correct it.",
	}, {
		ID: "host-selector-empty", Group: GroupHosts, Severity: Info, Needs: nodes, run: emptyHostSelectors,
		Title: "a host selector matches no node",
		Meaning: "The pool's `hostSelector` matches no Node, or none with an InternalIP, while other hosts may " +
			"draw from the pool. If none may, see `pool-not-ready`. Clusters without Nodes are not checked.",
		Impact: "none, unless a label is misspelt",
		Remedy: "Correct the selector, or label the nodes.",
	}, {
		ID: "node-in-no-pool", Group: GroupHosts, Severity: Info, Needs: nodes, run: nodesInNoPool,
		Title: "no pool lists a node",
		Meaning: "No pool admits the Node by `hosts`, `hostSubnets` or `hostSelector`. This is normal for nodes " +
			"whose pods get their addresses elsewhere.",
		Impact: "pods that start on the node get no address from bcsnet",
		Remedy: "Add the node to a pool.",
	}}
}
