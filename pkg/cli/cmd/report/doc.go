// Package report is the command that collects into one archive the data that others need to help. It imports no other
// command; the output of other commands comes from the root command.
package report
