// Package image has real nodes with the images as they are shipped: containerd has them from their archives, the chart
// installs them, and the kubelet runs them with the rights, the user and the bounds that the chart gives. From there it
// goes to the first address, and from plugins of the released system to TLS and back.
package image
