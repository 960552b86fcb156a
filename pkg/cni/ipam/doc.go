// Package ipam is the CNI plugin bcsnet-ipam: it gets the addresses of containers from the allocator and gives them
// back, whatever dies meanwhile.
package ipam
