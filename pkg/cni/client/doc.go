// Package client asks the allocator for the CNI plugin: it tries the replicas in turn until one answers, within the
// time that the call has, and takes no answer that is not one to its question.
package client
