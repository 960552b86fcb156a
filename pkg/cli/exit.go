package cli

import (
	"context"
	"errors"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitFindings    = 3 // findings or differences
	exitTimeout     = 124
	exitInterrupted = 130
)

// found is the end of a command that was asked to look, found something and has said so.
func found() error { return &failure{code: exitFindings} }

// exitCode is the one place where an error becomes an exit code. ctx ends when the user interrupts.
func exitCode(ctx context.Context, err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &f) && f.code != 0:
		return f.code
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	default:
		return exitFailed
	}
}
