// Package httpapi is the allocator's HTTP service, which CNI plugins call. Its routes, fields and envelope are those of
// bcs-netservice-controller, with later additions. openapi.yaml and docs/reference describe the stable part.
package httpapi

//go:generate go test -run ^TestReasonsAreDocumented$ -update .
