package workload

import "strings"

// Groups of the kinds that are known without discovery.
const (
	appsGroup     = "apps"
	batchGroup    = "batch"
	kubevirtGroup = "kubevirt.io"
	networksGroup = "k8s.cni.cncf.io"
)

// Kinds that are named in more than one place.
const (
	podKind       = "Pod"
	nodeKind      = "Node"
	namespaceKind = "Namespace"
	vmKind        = "VirtualMachine"
	vmiKind       = "VirtualMachineInstance"
	ipamClaimKind = "IPAMClaim"
)

// nature describes how a kind of workload treats its pods.
type nature uint8

const (
	// foreign: a kind without a scale about which nothing else is known, such as one of an operator.
	foreign nature = iota
	// app: its pods are interchangeable, or numbered as <workload>-<ordinal>, and somebody sets their number.
	app
	// machine: a virtual machine.
	machine
	// bare: a pod, or an instance of a virtual machine, that no other object creates.
	bare
	// task: Jobs, and CronJobs that create them.
	task
	// daemon: a pod on each node.
	daemon
	// attachment: an IPAMClaim, which stands for one interface of any pod that names it. No pod belongs to it.
	attachment
)

// kindInfo describes a kind that is known without discovery.
type kindInfo struct {
	group, version, kind, resource string
	// prefix is the prefix of the names of claims.
	prefix string
	nature nature
	// passing reports whether the kind's owner generates its names. Then that owner is the workload.
	passing bool
	// watched reports whether the kind is watched from the start.
	watched bool
}

// known returns Kubernetes' own kinds, which need no discovery, and kinds with special treatment. A kind without a
// resource is discovered like any other.
func known() [12]kindInfo {
	return [...]kindInfo{
		{appsGroup, "v1", "Deployment", "deployments", "deploy", app, false, true},
		{appsGroup, "v1", "ReplicaSet", "replicasets", "rs", app, true, true},
		{appsGroup, "v1", "StatefulSet", "statefulsets", "sts", app, false, true},
		{appsGroup, "v1", "DaemonSet", "daemonsets", "ds", daemon, false, true},
		{batchGroup, "v1", "Job", "jobs", "job", task, true, true},
		{batchGroup, "v1", "CronJob", "cronjobs", "cronjob", task, false, true},
		{"", "v1", namespaceKind, "namespaces", "", foreign, false, true},
		{"", "v1", podKind, "pods", "pod", bare, false, false},
		{"", "v1", "ReplicationController", "replicationcontrollers", "rc", app, true, false},
		{kubevirtGroup, "", vmKind, "", "vm", machine, false, false},
		{kubevirtGroup, "", vmiKind, "", "vmi", bare, true, false},
		{networksGroup, "", ipamClaimKind, "", ipamClaimPrefix, attachment, false, false},
	}
}

// ipamClaimPrefix begins the names of the claims of IPAMClaims.
const ipamClaimPrefix = "ipamclaim"

// sharedPrefix begins the names of the claims of shared pools.
const sharedPrefix = "pool"

// prefixOf returns the prefix of the names of claims of an unknown kind: the kind, followed by the group if the kind
// alone is the prefix of another kind.
func prefixOf(group, kind string) string {
	prefix := strings.ToLower(kind)
	taken := prefix == sharedPrefix || strings.Contains(prefix, "-")
	for _, k := range known() {
		taken = taken || k.prefix == prefix
	}
	if taken {
		return prefix + "." + group
	}
	return prefix
}
