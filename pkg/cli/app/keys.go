package app

import (
	"context"
	"os"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Quittable ends the context when the user presses q on the terminal. Until then, typed keys are not echoed into the
// list, and Ctrl-C and Ctrl-Z work as usual. stop restores the terminal.
func (s *App) Quittable(ctx context.Context) (quitting context.Context, stop func()) {
	in, ok := s.In.(*os.File)
	if !ok || !s.Terminal.Tty || !terminal.Is(s.In) {
		return ctx, func() {}
	}
	restore, err := terminal.ReadKeys(in)
	if err != nil {
		return ctx, func() {} // the terminal echoes keys, and Ctrl-C ends the list
	}
	quitting, cancel := context.WithCancel(ctx)
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := in.Read(key); err != nil || n == 0 {
				return
			}
			if key[0] == 'q' || key[0] == 'Q' {
				cancel()
				return
			}
		}
	}()
	// The terminal is restored as soon as the context ends, because a second Ctrl-C ends the process at once.
	restored := make(chan struct{})
	context.AfterFunc(quitting, func() { defer close(restored); restore() })
	return quitting, func() { cancel(); <-restored }
}
