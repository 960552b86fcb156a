// Package report is the command that gathers into one archive what others need to help. It imports no other command;
// what other commands print goes into the archive by way of their root.
package report
