// Package report is the command that collects into one archive the data that others need to help. It imports no other
// command, but calls them through the root command.
package report
