package access

import (
	"slices"
	"strings"
)

const (
	// nodeName is where the API server names the node of the pod that a token is bound to.
	nodeName = "authentication.kubernetes.io/node-name"
	// podName is where it names the pod itself.
	podName = "authentication.kubernetes.io/pod-name"
	// kubelets is the group of kubelets, whose names begin with kubelet.
	kubelets, kubelet = "system:nodes", "system:node:"
)

// NodeOf returns the node that a user is on, and whether he is on one: a token that is bound to a pod or a node names
// it, and so does the certificate of a kubelet. Where one is bound and the API server does not name the node, the name
// is empty: such a user acts for no host, rather than for all.
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
