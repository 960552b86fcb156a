// Package leadership decides which replica leads, and runs the leader's work: components that run in every term
// (Terms.OnTerm), and reconcilers whose queue is closed outside of terms (Queue). It also informs followers about the
// leader and the other replicas (Peers). It does not know the components.
package leadership
