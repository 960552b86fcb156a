// Package claim knows what claims are: which constraints a pod's claim puts on its addresses, and what becomes of them
// when nobody has them any more. What decides here is pure; the controller does it.
package claim
