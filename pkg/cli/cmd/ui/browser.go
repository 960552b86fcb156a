package ui

import (
	"context"
	"os/exec"
	"runtime"
)

// open opens a link in the desktop's browser.
func open(ctx context.Context, link string) error {
	command := map[string][]string{
		"darwin": {"open", link}, "windows": {"rundll32", "url.dll,FileProtocolHandler", link},
	}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open", link}
	}
	return exec.CommandContext(ctx, command[0], command[1:]...).Run()
}
