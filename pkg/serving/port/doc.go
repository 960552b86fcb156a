// Package port limits connections and requests at the ports of our programs: how many connections they keep, how long a
// caller may take, and how much memory slow readers hold. It makes every HTTP server of the controller, the node side
// and podcheck.
package port
