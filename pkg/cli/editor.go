package cli

import (
	"cmp"
	"context"
	"os/exec"
	"strings"
)

// runEditor opens a file in the user's editor and waits for its end. Package editor of kubectl does the same,
// and brings all that kubectl edit needs.
func (s *session) runEditor(ctx context.Context, path string) error {
	args := editorArgs(cmp.Or(s.getenv("KUBE_EDITOR"), s.getenv("EDITOR"), "vi"))
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.ErrOut
	if !s.out.tty {
		cmd.Stdout = s.ErrOut // what the editor draws is no output of ours
	}
	return cmd.Run()
}

// editorArgs are the words of an editor's command; one with quotes is for the shell to read.
func editorArgs(command string) []string {
	if strings.ContainsAny(command, `"'\`) {
		return []string{"sh", "-c", command + ` "$1"`, "sh"}
	}
	if words := strings.Fields(command); len(words) > 0 {
		return words
	}
	return []string{"vi"}
}
