// Package leadership decides which replica leads, and runs what only the leader does: a part in every term
// (Terms.OnTerm), and reconcilers whose queue is closed outside of terms (Queue). Followers know from it who leads and
// who else is there (Peers). It knows nothing of what the parts do.
package leadership
