// Package app holds what commands share in one call of the program: streams, clock, environment, connection, dry runs,
// errors, exit codes, narration, prompts and the editor. It knows no kind of object.
package app
