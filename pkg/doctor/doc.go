// Package doctor looks for what is wrong with pools, addresses and hosts. Its checks are data, and run
// over one snapshot of the cluster; they read nothing themselves and print nothing.
package doctor

//go:generate go test -run ^TestPage$ -update .
