// Package report has the command report, which packs everything that a helper needs into one archive. It imports no
// other command; what other commands print goes into the archive by way of their root.
package report
