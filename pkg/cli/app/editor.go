package app

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Editor returns the command of the user's editor.
func (s *App) Editor() string { return cmp.Or(s.getenv("KUBE_EDITOR"), s.getenv("EDITOR"), "vi") }

// EditorNeedsTerminal reports whether the editor draws on a terminal and there is none: it would hang, or spoil a
// log. Other commands may do their work unseen, and so may these when they are given flags.
func (s *App) EditorNeedsTerminal() bool {
	known := []string{"vi", "vim", "nvim", "nano", "pico", "emacs", "joe", "micro", "hx", "helix", "mcedit", "ne"}
	words := strings.Fields(s.Editor())
	return !terminal.Is(s.In) && (len(words) == 0 || len(words) == 1 && slices.Contains(known, filepath.Base(words[0])))
}

// RunEditor opens a file in the user's editor and waits for its end. Package editor of kubectl does the same,
// and brings all that kubectl edit needs.
func (s *App) RunEditor(ctx context.Context, path string) error {
	args := editorArgs(s.Editor())
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, terminal.Raw(s.Out), terminal.Raw(s.ErrOut)
	if !s.Terminal.Tty {
		cmd.Stdout = cmd.Stderr // what the editor draws is no output of ours
	}
	return cmd.Run()
}

// editorArgs splits an editor's command into words. It leaves a command with quotes to the shell.
func editorArgs(command string) []string {
	if strings.ContainsAny(command, `"'\`) {
		return []string{"sh", "-c", command + ` "$1"`, "sh"}
	}
	if words := strings.Fields(command); len(words) > 0 {
		return words
	}
	return []string{"vi"}
}
