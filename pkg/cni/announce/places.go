package announce

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxRepeaters bounds the number of processes of a node that repeat announcements at the same time. Each lives for a
// second and uses 1.1 MiB, which counts for the caller of the plugin: the daemon of thick Multus has 50 MiB by default.
const maxRepeaters = 8

// errNoPlace is the error of takePlace if the node already has maxRepeaters repeating processes.
var errNoPlace = errors.New("as many processes repeat announcements as may")

// takePlace takes one of the slots for repeating processes by locking a file that all calls on the node share. The slot
// belongs to the process that has the returned file open, also by inheritance, and is free again when that process
// ends.
func takePlace(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("find a place for a repeating process: %w", err)
	}
	for i := range int64(maxRepeaters) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: i, Len: 1}
		if err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err == nil {
			return f, nil
		}
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, errNoPlace
	}
	return nil, fmt.Errorf("find a place for a repeating process: %w", err)
}
