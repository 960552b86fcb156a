// Package importer plans how pools, claims and leases of another system are taken over. A reader (package system)
// yields the rows of that system; the plan compares them with the running pods and with what is here. It changes
// nothing, here or there.
package importer
