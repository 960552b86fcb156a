// Package ui has the command that shows pools as pages in a browser. It imports no other command.
package ui
