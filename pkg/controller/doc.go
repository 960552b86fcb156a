// Package controller assembles bcsnet-controller: options become components (core.go, assemble.go), and those run
// (run.go). Feeds and the HTTP service run on every replica, reconcilers on the leader. The components are in packages
// of their own: leadership, pool, claim, gc, node, galaxyconfig, and conditions and informers, which they share.
package controller
