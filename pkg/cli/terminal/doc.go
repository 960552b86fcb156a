// Package terminal finds out what a stream can show, and draws what depends on it: colours, bars and keys. It knows
// nothing of the commands, and no table's columns depend on it.
package terminal
