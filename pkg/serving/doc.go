// Package serving has the TLS of the allocator's port: a CA in a Secret that all replicas share, a certificate of each
// replica that exists only in its memory, and a listener that accepts TLS and plain connections on one port.
package serving
