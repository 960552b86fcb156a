// Package leadership decides which replica leads, and runs what only the leader does: components that run in every term
// (Terms.OnTerm), and reconcilers whose queue is closed outside of terms (Queue). It also tells followers the leader
// and the other replicas (Peers). It does not know what the components do.
package leadership
