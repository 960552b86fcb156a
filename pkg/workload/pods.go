package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ErrNotFound means that the pod does not exist.
var ErrNotFound = errors.New("there is no such pod")

// Pod has the data of a pod that the allocator needs.
type Pod struct {
	Namespace, Name string
	// Version is the resourceVersion at which it was read; 0 if that is not a number.
	Version uint64
	// UID is the UID of the pod in leases. For a static pod it is the hash of its manifest, which its kubelet also
	// passes to CNI plugins: the UID of its mirror changes while its containers run on.
	UID string
	// Node is the node to which the pod is bound; empty before.
	Node string
	// HostIPs are the addresses of the host in the pod's status; empty until the kubelet reports.
	HostIPs []netip.Addr
	// Ended reports whether the pod is Succeeded or Failed, Over whether its kubelet has also reported that each
	// container has ended for good, Deleting whether the pod has a deletionTimestamp.
	Ended, Over, Deleting bool
	// DeletedAt is the time of the deletion of a pod that is being deleted, in whole seconds; zero for others.
	DeletedAt time.Time
	// EndsBy is the deletionTimestamp of a pod that is being deleted, the end of its grace period, or the time at which
	// it was seen to be gone; zero for others.
	EndsBy time.Time
	// Termination is the time that its containers have to end after a deletion, even a forced one: a kubelet uses the
	// period of the spec if a pod vanishes.
	Termination time.Duration
	// EndedAt is the time at which the last container of an ended pod ended; zero if that is unknown.
	EndedAt time.Time
	// Addrs are the pod's own reported addresses. Networks reports whether they include all its networks, from a valid
	// annotation NetworkStatus, not only the first one.
	Addrs    []netip.Addr
	Networks bool
	// IfNames are the interfaces of Addrs, in the same order; empty if the annotation lacks them.
	IfNames []string
	// Mirror reports whether a kubelet created the pod for a static pod, in a namespace and with annotations of its
	// choice.
	Mirror bool
	// HostNetwork reports whether the pod's addresses are those of its host.
	HostNetwork bool
	// Created is the time at which the pod was created, rounded down to seconds. Started is the time at which the
	// kubelet accepted it; before that, the same as Created.
	Created, Started time.Time
	// Controller is the owner that created the pod, if any. Generated reports whether the pod's name has a random part.
	Controller Owner
	Generated  bool
	// Annotations are the annotations that are relevant for a policy; nil if there are none.
	Annotations map[string]string
	// VM is the name in the label of the virtual machine that KubeVirt runs in the pod.
	VM string
	// Migration is the live migration whose target the pod claims to be; zero for most. The claim proves nothing.
	Migration Migration
	// References are the IPAMClaims that its networks name for interfaces. ReferenceProblem is the reason why they
	// cannot be read.
	References       []Reference
	ReferenceProblem string
	// Several reports whether its annotations name networks other than the first. Interfaces are the interfaces of
	// these; none if they cannot be read.
	Several    bool
	Interfaces []Interface
	// IfName is the interface for which a policy is requested; empty for the first one with an IPAMClaim, or else any.
	// Network is the network in the interface's request; empty for none. The caller sets these and Asks; they are not
	// read from an object.
	IfName, Network string
	Asks            Asked
}

// Asked has the terms of the request itself, which override the defaults of a namespace.
type Asked struct {
	Addrs    []netip.Addr
	Families ipam.Families
}

// set returns the addresses as a set.
func (a Asked) set() *netipx.IPSet { return ipaddr.SetOfAddrs(a.Addrs...) }

// At returns the pod for a request about an interface of a network; the network is empty if the interface's
// configuration names none.
func (p Pod) At(ifName, network string) Pod {
	p.IfName, p.Network = ifName, network
	return p
}

// Migration names a VirtualMachineInstanceMigration.
type Migration struct{ Name, UID string }

// Reported is the time within which the kubelet of a ready node reports a pod's new addresses. Until then its status
// may have those of an earlier sandbox.
const Reported = 5 * time.Minute

// NetworkStatus is the annotation in which Multus and others report the addresses of all networks.
const NetworkStatus = "k8s.v1.cni.cncf.io/network-status"

// Annotations with which kubelets mark the mirrors of static pods.
const (
	mirrorAnnotation = "kubernetes.io/config.mirror"
	hashAnnotation   = "kubernetes.io/config.hash"
)

// staticUID is a hash of 128 bits in hexadecimal digits; the UID of any other pod has dashes.
var staticUID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Static reports whether the UID of a lease is that of a static pod. Such a pod runs even if the API server does not
// know it.
func Static(uid string) bool { return staticUID.MatchString(uid) }

// FromObject reads a pod.
func FromObject(p *corev1.Pod) Pod {
	pod := Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		Ended:    ended(p),
		Deleting: p.DeletionTimestamp != nil,
	}
	pod.Version, _ = strconv.ParseUint(p.ResourceVersion, 10, 64)
	if pod.Deleting {
		pod.DeletedAt, pod.EndsBy = p.DeletionTimestamp.Time, p.DeletionTimestamp.Time
		if grace := p.DeletionGracePeriodSeconds; grace != nil {
			pod.DeletedAt = pod.EndsBy.Add(-time.Duration(*grace) * time.Second)
		}
	}
	pod.Termination = termination(p)
	for _, ip := range p.Status.HostIPs {
		if a, err := ipaddr.ParseAddr(ip.IP); err == nil {
			pod.HostIPs = append(pod.HostIPs, a)
		}
	}
	pod.Mirror = p.Annotations[mirrorAnnotation] != ""
	if hash := p.Annotations[hashAnnotation]; pod.Mirror && Static(hash) {
		pod.UID = hash
	}
	pod.HostNetwork, pod.Created, pod.Started = p.Spec.HostNetwork, p.CreationTimestamp.Time, p.CreationTimestamp.Time
	if p.Status.StartTime != nil {
		pod.Started = p.Status.StartTime.Time
	}
	if pod.Ended {
		pod.EndedAt, pod.Over = endedAt(p), over(p)
	}
	pod.Controller, pod.Generated = controllerOf(p), p.GenerateName != ""
	pod.Annotations, pod.VM = understood(p.Annotations), p.Labels[VMLabel]
	pod.References, pod.ReferenceProblem = references(p.Annotations)
	if pod.Mirror && len(pod.References) > 0 {
		pod.References, pod.ReferenceProblem = nil,
			"a static pod, which its kubelet has made up, draws from no IPAMClaim"
	}
	pod.Migration = migrationOf(p)
	pod.Interfaces, pod.Several = furtherInterfaces(p.Annotations)
	listed, ok := networks(p)
	pod.Networks = ok
	add := func(text, ifName string) {
		if a, err := ipaddr.ParseAddr(text); err == nil && !slices.Contains(pod.Addrs, a) {
			pod.Addrs, pod.IfNames = append(pod.Addrs, a), append(pod.IfNames, ifName)
		}
	}
	for _, ip := range p.Status.PodIPs { // of the first interface
		add(ip.IP, lease.DefaultIfName)
	}
	for _, n := range listed {
		for _, ip := range n.IPs {
			add(ip, n.Interface)
		}
	}
	return pod
}

// network has the relevant fields of an entry of the annotation NetworkStatus.
type network struct {
	Interface string   `json:"interface,omitempty"`
	IPs       []string `json:"ips,omitempty"`
}

// networks returns the entries of the annotation; ok is false if it is missing or cannot be read.
func networks(p *corev1.Pod) (all []network, ok bool) {
	if json.Unmarshal([]byte(p.Annotations[NetworkStatus]), &all) != nil {
		return nil, false
	}
	return all, true
}

// endedAt returns the time at which the state of an ended pod last changed.
func endedAt(p *corev1.Pod) (last time.Time) {
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// termination returns the longer of the grace periods in a pod's spec and in its deletion.
func termination(p *corev1.Pod) time.Duration {
	longest := int64(lease.UsualTermination / time.Second)
	if asked := p.Spec.TerminationGracePeriodSeconds; asked != nil {
		longest = *asked
	}
	if deleted := p.DeletionGracePeriodSeconds; deleted != nil {
		longest = max(longest, *deleted)
	}
	return time.Duration(min(max(longest, 0), math.MaxInt32)) * time.Second
}

// LongTermination returns the grace period in the form of leases: zero for the usual one.
func (p Pod) LongTermination() time.Duration {
	if p.Termination <= lease.UsualTermination {
		return 0
	}
	return p.Termination
}

// Trim returns a pod with only the fields that FromObject reads, for a cache of all pods.
func Trim(p *corev1.Pod) *corev1.Pod {
	t := &corev1.Pod{}
	t.Namespace, t.Name, t.UID, t.ResourceVersion = p.Namespace, p.Name, p.UID, p.ResourceVersion
	t.DeletionTimestamp, t.DeletionGracePeriodSeconds = p.DeletionTimestamp, p.DeletionGracePeriodSeconds
	t.Spec.NodeName = p.Spec.NodeName
	if termination(p) != lease.UsualTermination {
		t.Spec.TerminationGracePeriodSeconds = p.Spec.TerminationGracePeriodSeconds
	}
	t.CreationTimestamp = p.CreationTimestamp
	t.Spec.HostNetwork = p.Spec.HostNetwork
	t.Status.Phase, t.Status.HostIPs, t.Status.StartTime = p.Status.Phase, p.Status.HostIPs, p.Status.StartTime
	t.Status.PodIPs = p.Status.PodIPs
	t.GenerateName = p.GenerateName
	for _, key := range []string{VMLabel, migrationLabel} {
		if v := p.Labels[key]; v != "" {
			metav1.SetMetaDataLabel(&t.ObjectMeta, key, v)
		}
	}
	if c := metav1.GetControllerOfNoCopy(p); c != nil {
		t.OwnerReferences = []metav1.OwnerReference{sharedReference(c)}
	}
	t.Annotations = understood(p.Annotations)
	for _, key := range []string{mirrorAnnotation, hashAnnotation, migrationAnnotation} {
		if v, ok := p.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, v)
		}
	}
	for _, key := range []string{networksAnnotation, defaultNetworkAnnotation} {
		switch v := p.Annotations[key]; {
		case strings.Contains(v, ReferenceField):
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, v)
		case key == networksAnnotation && v != "":
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, trimNetworks(v))
		}
	}
	if all, ok := networks(p); ok {
		text, _ := json.Marshal(all) // cannot fail
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, NetworkStatus, string(text))
	}
	if ended(p) {
		if at := endedAt(p); !at.IsZero() {
			t.Status.Conditions = []corev1.PodCondition{{LastTransitionTime: metav1.NewTime(at)}}
		}
		trimOver(p, t)
	}
	return t
}

// Pods finds pods.
type Pods struct {
	// Cached reads from a watch cache, Live from the API server.
	Cached, Live client.Reader
	// NodeAddrs returns the known addresses of a node.
	NodeAddrs func(node string) []netip.Addr
	// Endings has the ending pods; if nil, Cached is asked.
	Endings *Endings
}

// Ending returns the matching pods of a namespace that are being deleted or were just deleted, as of a version of one
// of its pods. It waits up to a second for a watch that is behind that version. match gets the UID; it must be fast and
// not call p.
func (p *Pods) Ending(
	ctx context.Context, namespace string, version uint64, match func(uid string) bool,
) (all []Pod, err error) {
	if p.Endings != nil {
		p.Endings.await(ctx, version)
		return p.Endings.of(namespace, match), nil
	}
	var list corev1.PodList
	if err := p.Cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		if pod := FromObject(&list.Items[i]); pod.Deleting && match(pod.UID) {
			all = append(all, pod)
		}
	}
	return all, nil
}

// Find returns the pod of a request from host. It trusts the cache only if the pod has the request's UID or, if the
// request has no UID, is on that host and has neither ended nor is being deleted. Otherwise it reads the pod once from
// the API server. The error is ErrNotFound if the pod does not exist, or if its UID is not the request's (the pod that
// was found instead is returned, too).
func (p *Pods) Find(ctx context.Context, namespace, name, uid string, host netip.Addr) (Pod, error) {
	var o corev1.Pod
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := p.Cached.Get(ctx, key, &o); err == nil {
		if pod := FromObject(&o); p.trusted(pod, uid, host) {
			return pod, nil
		}
	}
	return p.FindLive(ctx, namespace, name, uid)
}

// FindLive does the same as Find, without the cache.
func (p *Pods) FindLive(ctx context.Context, namespace, name, uid string) (Pod, error) {
	var o corev1.Pod
	err := p.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &o)
	switch {
	case apierrors.IsNotFound(err):
		return Pod{}, ErrNotFound
	case err != nil:
		return Pod{}, fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	pod := FromObject(&o)
	if uid != "" && pod.UID != uid {
		return pod, ErrNotFound
	}
	return pod, nil
}

// On reports whether a pod is on one of some hosts; nil stands for all hosts.
func (p *Pods) On(pod Pod, hosts []netip.Addr) bool {
	return hosts == nil || pod.Node != "" && slices.ContainsFunc(hosts, func(host netip.Addr) bool {
		return slices.Contains(pod.HostIPs, host) || slices.Contains(p.NodeAddrs(pod.Node), host)
	})
}

func (p *Pods) trusted(pod Pod, uid string, host netip.Addr) bool {
	if pod.Ended {
		return false
	}
	if uid != "" {
		return pod.UID == uid
	}
	return !pod.Deleting && pod.Node != "" &&
		(slices.Contains(pod.HostIPs, host) || slices.Contains(p.NodeAddrs(pod.Node), host))
}
