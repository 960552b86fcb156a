package announce

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxRepeaters bounds the processes of a node that repeat announcements at a time, each of which lives for a second.
// One takes 1.1 MiB, and they count for whoever calls the plugin: the daemon of thick Multus has 50 MiB by default.
const maxRepeaters = 8

// errNoPlace is the error of takePlace if the node has as many repeating processes as it may.
var errNoPlace = errors.New("as many processes repeat announcements as may")

// takePlace takes the place of a repeating process, by a lock on a file that all calls on the node share. Whoever has
// the returned file has the place: a process that inherits it, until it ends.
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
