// Package podcheck runs inside the pods of bcsnetctl check nodes: one container answers other pods by HTTP. The other
// container asks these pods, the gateway, and the link for duplicates, and ends with a report.
package podcheck
