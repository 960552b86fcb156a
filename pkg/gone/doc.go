// Package gone decides whether nobody has an address any more although its lease says so. All who would take an address
// away without being told to ask it, and differ only in the evidence that they can gather.
package gone
