// Package claim knows what claims are: on which terms a pod gets addresses, and what becomes of them when nobody
// has them any more. What decides here is pure; the controller does it.
package claim
