// Package install installs bcsnet by its chart on a real node: containerd has the image as it is shipped, and the kubelet
// runs it with the rights, the user and the bounds that the chart gives.
package install
