package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks on the terminal; anything but yes is no.
func (s *session) confirm(ctx context.Context, question string) error {
	if !isTerminal(s.In) {
		return usagef("standard input is no terminal to ask on").withHint("to go on without a question: --yes")
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
	return &failure{message: "not confirmed: nothing was changed"}
}

// readLine reads an answer, with its end of line unless the input ended first.
func (s *session) readLine(ctx context.Context, from *bufio.Reader) (string, error) {
	answer := make(chan string, 1)
	go func() {
		line, _ := from.ReadString('\n') // the end of the input is an empty answer
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
