// Package controller assembles bcsnet-controller: options become components (core.go, assemble.go), and those run
// (run.go). Feeds and the HTTP service run on every replica, reconcilers on the leader. What a component does is in a
// package of its own: leadership, pool, claim, gc, node, galaxyconfig, and conditions and informers, which they share.
package controller
