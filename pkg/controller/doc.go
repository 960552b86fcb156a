// Package controller assembles bcsnet-controller: it turns options into components (core.go, assemble.go) and runs them
// (run.go). Feeds and the HTTP service run on every replica, reconcilers on the leader. The components have packages of
// their own: leadership, pool, claim, gc, node, galaxyconfig, and conditions and informers, which they share.
package controller
