package workload

import (
	"slices"
	"strings"
	"sync"
)

// Level is the kind of object that has an annotation. The object nearer to the pod takes precedence.
type Level uint16

// Levels, the nearest first.
const (
	OnPod       Level = 1 << iota
	OnWorkload        // its own metadata, not its pods' template, which makes annotations of pods
	onClaim           // a claim created for the workload, which has no annotations
	OnNamespace       // defaults
)

// Field is the part of a policy that an annotation sets.
type Field uint8

// Fields of a policy that annotations set.
const (
	fieldSets Field = iota
	fieldPool
	fieldClaim
	fieldShared
	fieldRelease
	fieldKeep
	fieldIdentity
	fieldGateway
	fieldFamilyPolicy
	fieldFamilies
	fields int = iota
)

// String returns the field's name in a Policy.
func (f Field) String() string {
	return [...]string{"Sets", "Pool", "Claim", "Shared", "Release", "Keep", "Identity", "Gateway",
		"FamilyPolicy", "Families",
	}[f]
}

// Annotation describes an annotation that bcsnet understands: its own, and those of the systems that it replaces.
type Annotation struct {
	Key string
	// Dialect is the system that defines the annotation.
	Dialect string
	// On has a bit for each Level on which it is allowed.
	On Level
	// Field that it sets.
	Field Field
	// Value describes the form of its value, and Meaning its effect, for the documentation.
	Value, Meaning string

	read func(value string) (parsedValue, error)
}

const (
	ownDialect = "bcsnet"
	dialectA   = "bcs-netservice-controller"
	dialectB   = "galaxy-ipam"
	dialectC   = "crd-ipkeeper"

	ownPrefix    = "networkextension.bkbcs.tencent.com/"
	galaxyPrefix = "k8s.v1.cni.galaxy.io/"
	keeperPrefix = "ipkeeper.generals.space/"

	annotations = 17

	onPodOrWorkload = OnPod | OnWorkload
	anywhere        = OnPod | OnWorkload | OnNamespace
)

// ClaimAnnotation names the claim whose addresses a pod gets.
const ClaimAnnotation = ownPrefix + "claim"

// IsOwn reports whether an annotation is one of bcsnet's own dialect.
func IsOwn(key string) bool { return strings.HasPrefix(key, ownPrefix) }

// Annotations returns all annotations, bcsnet's own first: messages name two contradicting annotations in this order.
// The result is an array, which avoids an allocation for every pod that a cache delivers.
func Annotations() [annotations]Annotation {
	return [annotations]Annotation{
		{ownPrefix + "ip", ownDialect, onPodOrWorkload, fieldSets, "`10.0.0.5`, `10.0.0.5-10.0.0.9,2001:db8::5`",
			"Addresses, ranges and CIDRs of which the pod gets one, of each family that is named. On the template of " +
				"a Deployment they are a set that its pods share.", readAddresses},
		{
			ownPrefix + "pool", ownDialect, anywhere, fieldPool, "name of a BCSNetPool, or several: `blue,green`",
			"The pool to draw from. Several are tried in this order; pools of one network serve a request together, " +
				"each family by the first that has an address.", readPools,
		},
		{
			ClaimAnnotation, ownDialect, anywhere, fieldClaim,
			"`NAME` of a BCSNetIPClaim of the pod's namespace, or `NAMESPACE/NAME`",
			"The claim whose addresses the pod gets. It has to exist, and to be open to the pod's namespace.",
			readClaimName,
		},
		{ownPrefix + "release-policy", ownDialect, anywhere, fieldRelease,
			"`with-pod`, `immutable`, `never`, `timed`, in any case; `WithPod` is `with-pod`",
			"What ends the holding: the end of the pod; scaling down or the end of the workload; a release by hand; " +
				"a while (`keep`) after the end of the pod.", readOwnPolicy},
		{
			ownPrefix + "keep", ownDialect, anywhere, fieldKeep, "`1s` to `8760h`",
			"How long the address is kept after the pod ended; it implies `timed`, whose default is 48h.", readKeep,
		},
		{
			ownPrefix + "ip-family-policy", ownDialect, anywhere, fieldFamilyPolicy,
			"`SingleStack`, `PreferDualStack`, `RequireDualStack`",
			"As `ipFamilyPolicy` of a Service: one address; one of each family of a network, or else one; " +
				"one of each, or none.",
			readFamilyPolicy,
		},
		{
			ownPrefix + "ip-families", ownDialect, anywhere, fieldFamilies, "`IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`",
			"As `ipFamilies` of a Service: the first is the family of a single address, and comes first " +
				"in the answer. Without a " +
				"policy, one is `SingleStack` and two are `RequireDualStack`.", readFamilies,
		},
		{
			"netservicecontroller.bkbcs.tencent.com", dialectA, onPodOrWorkload, fieldRelease, "`fixed-ip`",
			"The address is kept for a while after the pod ended: `timed`.", readFixedIP,
		},
		{
			"keepduration.netservicecontroller.bkbcs.tencent.com", dialectA, onPodOrWorkload, fieldKeep,
			"`1s` to `500h`",
			"For how long, 48h unless said; without `fixed-ip` it does nothing.", readKeepDuration,
		},
		{
			"primarykey.netservicecontroller.bkbcs.tencent.com", dialectA, onPodOrWorkload, fieldIdentity,
			"up to 253 bytes of text", "What the address is kept for in place of the pod's name.", readText,
		},
		{
			"netservicecontroller.bkbcs.tencent.com/ipclaim", dialectA, onPodOrWorkload, fieldClaim,
			"name of a claim of the pod's namespace", "As `claim`.", readClaimName,
		},
		{
			galaxyPrefix + "release-policy", dialectB, onPodOrWorkload, fieldRelease, "`immutable`, `never`, or empty",
			"As `release-policy`; empty is as if it were not there.", readGalaxyPolicy,
		},
		{
			"tke.cloud.tencent.com/eni-ip-pool", dialectB, onPodOrWorkload, fieldShared, "up to 253 bytes of text",
			"Name of a pool of addresses that several workloads of the namespace share; of all namespaces with " +
				"`--shared-pools-for-all`. The policy is `never`, whatever else is said.", readText,
		},
		{
			galaxyPrefix + "args", dialectB, onPodOrWorkload, fieldSets,
			"`{\"request_ip_range\":[[\"10.0.0.2~10.0.0.30\"],[\"10.0.0.60\"]]}`",
			"One address of each inner list, all or nothing.", readArgs,
		},
		{
			keeperPrefix + "ip_address", dialectC, onPodOrWorkload, fieldSets, "`172.16.91.181/24`",
			"The pod's address, held by a claim; its pool has to have that mask.", readKeeperAddress,
		},
		{
			keeperPrefix + "ip_pool", dialectC, onPodOrWorkload, fieldSets, "`172.16.91.142/24,172.16.91.143/24`",
			"The addresses of a Deployment, StatefulSet or DaemonSet, which stands on the object itself; a claim " +
				"holds them for its pods.", readKeeperPool,
		},
		{
			keeperPrefix + "gateway", dialectC, onPodOrWorkload, fieldGateway, "`172.16.91.2`",
			"The pod's gateway in place of the pool's: inside the subnet, or link-local for IPv6.", readGateway,
		},
	}
}

// understood returns the annotations of an object that bcsnet understands and, with an empty value, unknown ones with
// bcsnet's prefix; nil if there are none.
func understood(all map[string]string) (ours map[string]string) {
	for key, value := range all {
		_, _, known := annotationOf(key)
		if !known && !IsOwn(key) {
			continue
		}
		if !known {
			value = ""
		}
		if ours == nil {
			ours = map[string]string{}
		}
		ours[key] = value
	}
	return ours
}

const (
	// readingFrom is the length from which on the parsed value of an annotation is cached: a shorter one is parsed
	// faster than it is found.
	readingFrom = 64
	// maxReadings bounds the cached values, in bytes. If there are more, all are parsed again.
	maxReadings = 1 << 20
)

// readings caches the parsed forms of long annotation values, since hundreds of pods of a workload have the same. The
// zero value is ready for use, and nil caches nothing.
type readings struct {
	mu    sync.Mutex
	known map[reading]parsedValue
	bytes int
}

type reading struct{ key, value string }

// of returns the parsed value of an annotation. Invalid values are not cached.
func (r *readings) of(a Annotation, value string) (parsedValue, error) {
	if r == nil || len(value) < readingFrom {
		return a.read(value)
	}
	this := reading{a.Key, value}
	r.mu.Lock()
	m, ok := r.known[this]
	r.mu.Unlock()
	if ok {
		m.sets = slices.Clone(m.sets)
		return m, nil
	}
	m, err := a.read(value)
	if err != nil {
		return m, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes += len(value); r.known == nil || r.bytes > maxReadings {
		r.known, r.bytes = map[reading]parsedValue{}, len(value)
	}
	r.known[this] = m
	m.sets = slices.Clone(m.sets)
	return m, nil
}
