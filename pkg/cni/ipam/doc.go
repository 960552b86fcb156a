// Package ipam is the CNI plugin bcsnet-ipam: it gets the addresses of containers from the allocator and releases them,
// even if processes die meanwhile.
package ipam
