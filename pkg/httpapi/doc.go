// Package httpapi is the allocator's HTTP service as CNI plugins call it. Its routes, fields and
// envelope are those of bcs-netservice-controller, with what has been added since.
package httpapi
