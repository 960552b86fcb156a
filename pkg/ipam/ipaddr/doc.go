// Package ipaddr reads and writes addresses, ranges and CIDRs, and computes with sets of them. It knows nothing of
// pools and leases.
package ipaddr
