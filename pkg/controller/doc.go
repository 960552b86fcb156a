// Package controller runs bcsnet-controller: the feeds that keep the index up to date and the allocator's
// HTTP service on every replica, the reconcilers on the leader.
package controller
