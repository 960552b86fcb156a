// Package terminal detects what a stream can display, and draws what depends on it: colours, bars and keys. It knows no
// command, and no column of a table depends on it.
package terminal
