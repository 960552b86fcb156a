// Package clusterapi answers the claims of Cluster API, on the leader: IPAddressClaims whose poolRef is a BCSNetPool
// (--cluster-api). The contract is that of Cluster API's IPAM providers.
package clusterapi
