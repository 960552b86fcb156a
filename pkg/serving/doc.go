// Package serving has the TLS of the allocator's port: a CA in a Secret that all replicas share, a certificate of each
// replica that is in its memory alone, and a listener that takes TLS and plain connections on one port.
package serving
