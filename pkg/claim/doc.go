// Package claim decides about the constraints that a pod's claim puts on its addresses, and about kept addresses. These
// decisions are pure; the controller carries them out.
package claim
