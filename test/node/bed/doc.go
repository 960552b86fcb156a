// Package bed runs real nodes on this machine: kubelet, containerd, runc and reference CNI plugins, each node in
// namespaces of its own, beside a control plane of test/controlplane.
//
// The process that uses it runs in namespaces of its own as well, the fabric: a network with a bridge, where the
// control plane listens, and where the uplinks of the nodes are ports; a mount namespace with a file system in memory,
// which has all that nodes and control plane write; and a pid namespace, so that nothing outlives that process, however
// it ends. Of the machine itself only cgroups are used, whose names carry the mark of the bed. The next bed removes
// those of beds that are gone.
//
// Each node is a port of one flat network, 192.168.77.0/24 and fd00:77::/64, as are its pods: nodes have the last
// numbers 11, 12 and so on, the fabric has 1.
package bed
