// Package follow lists and watches objects while a command runs. It shows changes as lines or as a screen that is drawn
// again, or waits for a state of a set of objects. It knows no command.
package follow
