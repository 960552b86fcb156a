// Package gone decides whether nobody has an address any more although its lease says so. Whoever would take an address
// away without a release asks it. They differ only in the evidence that they can gather.
package gone
