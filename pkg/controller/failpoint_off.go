//go:build !faults

package controller

// hurried returns the options unchanged. A build with the tag faults may shorten the times in them.
func hurried(o Options) Options { return o }
