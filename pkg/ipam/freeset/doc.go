// Package freeset keeps which numbers of a large range are free. It finds the first free number at or after a given one
// in a few steps, and uses memory only for taken numbers. A set has no lock: those that share one lock it.
package freeset
