package hosts

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Annotation on a Node has further addresses of the machine, separated by commas, which an operator assigned. The node
// may ask for its pods' addresses by any of them.
const Annotation = "networkextension.bkbcs.tencent.com/host-addresses"

// ConditionType is bcsnet's condition of the Node, which the node side writes. No part of Kubernetes acts on it.
const ConditionType corev1.NodeConditionType = "BcsnetReady"

// OtherConflistFirst is the reason of that condition on a node whose runtime uses another network configuration than
// bcsnet's. The message begins with the names of the files.
const OtherConflistFirst = "OtherConflistFirst"

// MostOfStatus bounds the addresses that count of a Node's status. Its kubelet writes them, and pods never get an
// address that a Node has: without a bound, one kubelet could keep a whole pool from all pods.
const MostOfStatus = 64

// Node has the fields of a Node that matter here.
type Node struct {
	Name string
	// Addrs are all addresses that the Node claims, without duplicates: its InternalIPs, its ExternalIPs, then those
	// that only the annotation has. Internal are its InternalIPs, Further those of the annotation.
	Addrs, Internal, Further []netip.Addr
	// Unread are the parts of the annotation that are not addresses. Uncounted is the number of addresses that the
	// status has beyond MostOfStatus.
	Unread    []string
	Uncounted int
	Labels    map[string]string
	// Ready: its kubelet is in touch with the API server. Since is from when on it is as it is, by the clock of whoever
	// wrote the condition; zero if the Node does not say.
	Ready bool
	Since time.Time
	// OutOfService reports whether somebody states, by the taint node.kubernetes.io/out-of-service, that the machine is
	// off.
	OutOfService bool
	// OtherFirst is the message of the condition with the reason OtherConflistFirst; empty without it.
	OtherFirst string
}

// Of returns the relevant data of a Node.
func Of(o *corev1.Node) Node {
	n := Node{Name: o.Name, Labels: o.Labels}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range o.Status.Addresses {
			ip, err := ipaddr.ParseAddr(a.Address)
			switch {
			case err != nil || a.Type != kind || slices.Contains(n.Addrs, ip):
				continue
			case len(n.Addrs) == MostOfStatus:
				n.Uncounted++
				continue
			}
			if n.Addrs = append(n.Addrs, ip); kind == corev1.NodeInternalIP {
				n.Internal = append(n.Internal, ip)
			}
		}
	}
	for text := range strings.SplitSeq(o.Annotations[Annotation], ",") {
		text = strings.TrimSpace(text)
		switch ip, err := ipaddr.ParseAddr(text); {
		case text == "":
		case err != nil:
			n.Unread = append(n.Unread, text)
		case !slices.Contains(n.Addrs, ip):
			n.Addrs, n.Further = append(n.Addrs, ip), append(n.Further, ip)
		}
	}
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			n.Ready, n.Since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		case c.Type == ConditionType && c.Reason == OtherConflistFirst:
			n.OtherFirst = c.Message
		}
	}
	n.OutOfService = slices.ContainsFunc(o.Spec.Taints, IsOutOfService)
	return n
}

// IsOutOfService reports whether a taint says that nothing runs on the machine. As for kube-controller-manager, its
// effect does not matter.
func IsOutOfService(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }
