package app

import (
	"bufio"
	"context"
	"fmt"
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
