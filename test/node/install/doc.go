// Package install checks that the DaemonSet of config/node makes nodes with empty CNI directories into nodes whose pods
// have addresses, on real nodes, with the manifests and the image as they are shipped.
package install
