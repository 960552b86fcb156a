// Package podcheck runs inside the pods of bcsnetctl check nodes: one container answers others by HTTP, the other one
// asks them, the gateway, and the link for duplicates, and ends with a report.
package podcheck
