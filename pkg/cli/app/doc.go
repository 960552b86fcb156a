// Package app holds the shared parts of one call of the program: streams, clock, environment, connection, dry runs,
// errors, exit codes, narration, prompts and the editor. It knows no kind of object.
package app
