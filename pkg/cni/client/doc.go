// Package client asks the allocator for the CNI plugin: it tries the replicas in turn until one answers, within the
// time of the call, and accepts only answers to its request.
package client
