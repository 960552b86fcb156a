// Package follow lists and watches objects for as long as a command runs, and shows what changes: as lines, as a screen
// that is drawn again, or as a set of objects that are waited for. It knows no command.
package follow
