package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Answers to a question about one of several.
const (
	answerYes  = "y"
	answerNo   = "n"
	answerAll  = "a"
	answerQuit = "q"
)

// ask asks about one of several until it understands. The end of the input is quit.
func (s *session) ask(ctx context.Context, answers *bufio.Reader, question string) (string, error) {
	for {
		fmt.Fprintf(s.ErrOut, "%s [y/N/a/q] ", question)
		line, err := s.readLine(ctx, answers)
		if err != nil || line == "" {
			return answerQuit, err
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); answer {
		case answerYes, "yes":
			return answerYes, nil
		case answerNo, "no", "":
			return answerNo, nil
		case answerAll, "all":
			return answerAll, nil
		case answerQuit, "quit":
			return answerQuit, nil
		}
		s.say.note("y does it, n does not, a does it for all that follow, too, q ends")
	}
}
