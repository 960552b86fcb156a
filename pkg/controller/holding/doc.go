// Package holding has what the objects share that hold addresses: claims, among them those of IPAMClaims, the claims of
// Cluster API and Services. It takes addresses under the name of an owner, gives them back, and knows who waits.
package holding
