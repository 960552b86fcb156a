// Package runstate keeps, on the node, what the calls of the CNI plugin leave for each other and for metrics: which
// replica answered last, and a line about each call. It does not outlive a boot.
package runstate
