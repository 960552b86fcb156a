// Package lan makes networks of a test's own: hosts and a bridge that joins them, each in a network namespace that goes
// with the test. The machine's own network is not touched.
package lan
