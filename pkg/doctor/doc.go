// Package doctor finds problems of pools, addresses and hosts. Its checks are data and run over one snapshot of the
// cluster. They do not read from the cluster, and print nothing.
package doctor

//go:generate go test -run ^TestPage$ -update .
