// Package freeset keeps which of very many numbers are free: it finds the first free one at or after any other in a few
// steps, and takes memory only for what is taken. A set has no lock; whoever shares one has a lock around it.
package freeset
