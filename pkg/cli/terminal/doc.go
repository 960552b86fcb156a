// Package terminal detects the capabilities of a stream, and draws colours, bars and keys accordingly. It knows no
// command, and no column of a table depends on it.
package terminal
