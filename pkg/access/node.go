package access

import (
	"slices"
	"strings"
)

const (
	// nodeName is the key under which the API server names the node of the pod to which a token is bound.
	nodeName = "authentication.kubernetes.io/node-name"
	// podName is the key under which it names the pod itself.
	podName = "authentication.kubernetes.io/pod-name"
	// kubelets is the group of kubelets, and kubelet the prefix of their names.
	kubelets, kubelet = "system:nodes", "system:node:"
)

// NodeOf returns the node of a user, and whether the user is bound to one: by a token that is bound to a pod or a node,
// or by the certificate of a kubelet. If the user is bound but the API server does not name the node, the name is
// empty: such a user acts for no host, rather than for all.
func NodeOf(who User) (name string, bound bool) {
	if names, ok := who.Extra[nodeName]; ok {
		return strings.Join(names, ","), true
	}
	if _, ok := who.Extra[podName]; ok {
		return "", true
	}
	if name, ok := strings.CutPrefix(who.Username, kubelet); ok && slices.Contains(who.Groups, kubelets) {
		return name, true
	}
	return "", slices.Contains(who.Groups, kubelets)
}
