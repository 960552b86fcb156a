// Package probe asks a network whether another machine has an address before a container gets it: duplicate address
// detection as in RFC 5227 for IPv4 and RFC 4862 for IPv6.
package probe
