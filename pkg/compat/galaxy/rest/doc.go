// Package rest answers the REST API of galaxy-ipam: which addresses are held and by whom, the release of those that
// nobody has, and shared pools. What it answers is what galaxy's scripts and pages read; what it does, it does by the
// index, the claims and the compare-and-swap of everything else here.
package rest
