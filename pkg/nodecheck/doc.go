// Package nodecheck checks that nodes give pods working addresses: what a pod on a node must ask, what it answers, and
// which findings follow. It reads and sends nothing itself: the pods are those of bcsnetctl check nodes, and
// pkg/cni/podcheck runs in them.
package nodecheck
