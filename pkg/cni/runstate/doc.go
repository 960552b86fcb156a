// Package runstate keeps, on the node, what the calls of the CNI plugin leave for each other and for metrics: the
// replica that answered last, and a line about each call. It does not survive a reboot.
package runstate
