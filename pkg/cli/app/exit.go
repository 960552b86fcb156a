package app

import (
	"context"
	"errors"
)

// Exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitFindings    = 3 // findings or differences
	ExitSkipped     = 4 // some objects were not examined, and a flag makes that an error
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// Found returns the error of a search that printed findings.
func Found() error { return &Failure{Code: ExitFindings} }

// ExitCode maps an error to an exit code; no other code does. ctx is canceled by an interrupt of the user.
func ExitCode(ctx context.Context, err error) int {
	var f *Failure
	switch {
	case err == nil:
		return ExitDone
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &f) && f.Code != 0:
		return f.Code
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	default:
		return ExitFailed
	}
}
