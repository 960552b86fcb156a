package app

import (
	"os"
	"runtime"
)

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
