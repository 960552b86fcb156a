// Package image runs the controller's image on a real node: containerd has it as it is shipped, the chart installs it,
// and the kubelet runs it with the rights, the user and the bounds that the chart gives.
package image
