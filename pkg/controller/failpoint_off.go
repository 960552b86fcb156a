//go:build !faults

package controller

// hurried returns the options as they are: a build with the tag faults may be told to hurry.
func hurried(o Options) Options { return o }
