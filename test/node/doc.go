// Package node checks bcsnet on real nodes: kubelet, containerd and runc with our CNI plugins, two nodes side by side,
// the controller as it is shipped. Pods come, move and go while nodes, runtimes and plugins are killed. Whether an
// address is in use twice is asked by ARP in the network, all the time, not read from any object.
package node
