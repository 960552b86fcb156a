// Package ui serves the read models of package view as pages for a browser. The server renders the pages, which need no
// script and change nothing. With scripts, a page updates itself: the server watches its objects and sends the changed
// sections.
package ui
