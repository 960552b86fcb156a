// Package app holds what every command needs of one call of the program: streams, clock, environment, the way to the
// cluster, dry runs, errors and exit codes, narration, prompts and the editor. It knows no kind of object.
package app
