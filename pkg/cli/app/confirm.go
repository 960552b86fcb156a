package app

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Confirm asks on the terminal. Every answer but yes is an error. With --yes or --dry-run it does not ask.
func (s *App) Confirm(ctx context.Context, yes bool, question string) error {
	if yes || s.DryRun != DryRunNone {
		return nil
	}
	if !terminal.Is(s.In) {
		return Usagef("cannot ask for confirmation: standard input is not a terminal").
			WithHint("to go on without a question: --yes")
	}
	fmt.Fprintf(s.ErrOut, "%s [y/N] ", question)
	line, err := s.readLine(ctx, bufio.NewReader(s.In))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &Failure{Message: "not confirmed: nothing was changed"}
}

// readLine reads a line, including its end unless the input ends first.
func (s *App) readLine(ctx context.Context, from *bufio.Reader) (string, error) {
	answer := make(chan string, 1)
	go func() {
		line, _ := from.ReadString('\n') // at the end of the input the answer is empty
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.ErrOut)
		return "", ctx.Err()
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			fmt.Fprintln(s.ErrOut)
		}
		return line, nil
	}
}

// Answers to the question about one of several objects.
const (
	AnswerYes  = "y"
	AnswerNo   = "n"
	AnswerAll  = "a"
	AnswerQuit = "q"
)

// Prompt repeats a question about one of several objects until it gets a valid answer. The end of the input means quit.
func (s *App) Prompt(ctx context.Context, answers *bufio.Reader, question string) (string, error) {
	for {
		fmt.Fprintf(s.ErrOut, "%s [y/N/a/q] ", question)
		line, err := s.readLine(ctx, answers)
		if err != nil || line == "" {
			return AnswerQuit, err
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); answer {
		case AnswerYes, "yes":
			return AnswerYes, nil
		case AnswerNo, "no", "":
			return AnswerNo, nil
		case AnswerAll, "all":
			return AnswerAll, nil
		case AnswerQuit, "quit":
			return AnswerQuit, nil
		}
		s.Say.Note("y does it, n does not, a does it for all that follow, too, q ends")
	}
}

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
