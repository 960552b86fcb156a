package app

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

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
