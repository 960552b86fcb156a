package app

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Editor returns the command of the user's editor.
func (s *App) Editor() string { return cmp.Or(s.getenv("KUBE_EDITOR"), s.getenv("EDITOR"), "vi") }

// EditorNeedsTerminal reports whether the editor draws on a terminal and there is none. Such an editor would hang or
// spoil a log. A command with arguments may need no terminal.
func (s *App) EditorNeedsTerminal() bool {
	known := []string{"vi", "vim", "nvim", "nano", "pico", "emacs", "joe", "micro", "hx", "helix", "mcedit", "ne"}
	words := strings.Fields(s.Editor())
	return !terminal.Is(s.In) && (len(words) == 0 || len(words) == 1 && slices.Contains(known, filepath.Base(words[0])))
}

// RunEditor opens a file in the user's editor and waits until it exits. kubectl's package editor does the same, but
// imports all of kubectl edit.
func (s *App) RunEditor(ctx context.Context, path string) error {
	args := editorArgs(s.Editor())
	cmd := exec.CommandContext(ctx, args[0], append(args[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, terminal.Raw(s.Out), terminal.Raw(s.ErrOut)
	if !s.Terminal.Tty {
		cmd.Stdout = cmd.Stderr // the editor's screen is not our output
	}
	return cmd.Run()
}

// editorArgs splits an editor's command into words. A command with quotes is passed to the shell.
func editorArgs(command string) []string {
	if strings.ContainsAny(command, `"'\`) {
		return []string{"sh", "-c", command + ` "$1"`, "sh"}
	}
	if words := strings.Fields(command); len(words) > 0 {
		return words
	}
	return []string{"vi"}
}

// Display reports whether there is a desktop on which a browser can be opened.
func (s *App) Display() bool {
	if s.getenv("SSH_CONNECTION") != "" {
		return false
	}
	return runtime.GOOS == "darwin" || runtime.GOOS == "windows" || s.getenv("DISPLAY") != "" ||
		s.getenv("WAYLAND_DISPLAY") != ""
}

// ThisMachine returns USER@HOST, by which ssh on another machine may reach this one.
func (s *App) ThisMachine() string {
	name, err := os.Hostname()
	if err != nil {
		name = "HOST"
	}
	if user := s.getenv("USER"); user != "" {
		return user + "@" + name
	}
	return name
}
