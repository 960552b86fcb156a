//go:build linux || darwin

package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ReadKeys makes a terminal deliver keys at once and without an echo. In the background it fails and changes nothing,
// because the kernel would stop a background process that changes the terminal.
func ReadKeys(in *os.File) (restore func(), err error) {
	fd := int(in.Fd())
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return nil, err
	}
	if group != unix.Getpgrp() {
		return nil, errors.New("in the background")
	}
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO | unix.ICANON
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, nil
}
