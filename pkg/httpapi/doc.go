// Package httpapi is the allocator's HTTP service as CNI plugins call it. Its routes, fields and
// envelope are those of bcs-netservice-controller, with what has been added since. What clients may rely
// on stands in openapi.yaml and in docs/reference.
package httpapi

//go:generate go test -run ^TestReasonsAreDocumented$ -update .
