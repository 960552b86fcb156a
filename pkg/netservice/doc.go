// Package netservice reads the objects of the released bcs-netservice-controller, of the group
// netservice.bkbcs.tencent.com/v1, and plans the pools, claims and leases that they come to. It changes nothing.
package netservice
