// Package rest answers the REST API of galaxy-ipam: which addresses are held and by whom, the release of those that
// nobody has, and shared pools. Its answers have the form that galaxy's scripts and pages read. What it does goes
// through the index, the claims and the compare-and-swap of everything else here.
package rest
