// Package kubevirt finds out from KubeVirt's own objects whether a pod is the target of a live migration of the virtual
// machine in another pod. What the pod says about itself proves nothing.
package kubevirt
