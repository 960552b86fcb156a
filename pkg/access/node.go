package access

import (
	"slices"
	"strings"
)

// HostsAnnotation on a Node has further addresses that the node asks for, with commas between: an operator's word.
const HostsAnnotation = "networkextension.bkbcs.tencent.com/host-addresses"

const (
	// nodeName is where the API server names the node of the pod that a token is bound to.
	nodeName = "authentication.kubernetes.io/node-name"
	// kubelets is the group of kubelets, whose names begin with kubelet.
	kubelets, kubelet = "system:nodes", "system:node:"
)

// NodeOf returns the node that a user is on: a token that is bound to a pod names it, and so does the certificate of a
// kubelet. It is empty for who is on none.
func NodeOf(who User) string {
	if names := who.Extra[nodeName]; len(names) > 0 {
		return names[0]
	}
	if name, ok := strings.CutPrefix(who.Username, kubelet); ok && slices.Contains(who.Groups, kubelets) {
		return name
	}
	return ""
}
