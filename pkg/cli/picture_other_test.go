//go:build !linux

package cli

import (
	"context"
	"errors"

	"github.com/rogpeppe/go-internal/testscript"
)

// screen is for Linux.
func (f *fixture) screen(context.Context, *testscript.TestScript, []string) error {
	return errors.New("there is no terminal here")
}

// picture is for Linux.
func (f *fixture) picture(context.Context, *testscript.TestScript, []string) error {
	return errors.New("there is no terminal here")
}
