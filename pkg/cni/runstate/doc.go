// Package runstate stores, on the node, data that calls of the CNI plugin leave for later calls and for metrics: the
// replica that answered last, and a line about each call. It does not survive a reboot.
package runstate
