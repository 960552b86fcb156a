// Package rest answers the REST API of galaxy-ipam: which addresses are held and by whom, the release of those that
// nobody has, and shared pools. Its answers have the form that galaxy's scripts and pages read. It works through the
// index, the claims and the compare-and-swap, as all other code does.
package rest
