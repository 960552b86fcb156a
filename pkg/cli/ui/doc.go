// Package ui serves the read models of package view as pages for a browser. The pages are made here, need no script,
// and change nothing. If a browser runs scripts, they follow what they show: the server watches it and sends the
// sections that differ.
package ui
