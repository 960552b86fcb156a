//go:build linux

package bed

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix is how everything of a bed begins that has a name on the machine.
const prefix = "bcsnet-bed-"

// mark names one bed: its directory, and its cgroups. A lock on a file beside the directory shows that the bed lives:
// the kernel gives it back with the last process that has the file.
type mark struct {
	name string
	held *os.File
}

func newMark() (mark, error) {
	m := mark{name: prefix + strings.ToLower(rand.Text()[:8])}
	var err error
	if m.held, err = hold(m.lock(), os.O_CREATE|os.O_EXCL); err != nil {
		return m, err
	}
	return m, os.Mkdir(m.directory(), 0o755)
}

func (m mark) directory() string { return filepath.Join(os.TempDir(), m.name) }
func (m mark) lock() string      { return m.directory() + ".lock" }

// hold takes the lock of a file, or fails when somebody has it.
func hold(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remove removes all that the machine has of the bed, which must not live. The directory has had a file system of the
// bed mounted on it, and so is empty. The lock goes last: what could not be removed is left to the next sweep.
func (m mark) remove() error {
	if err := removeCgroups(m.name + "*"); err != nil {
		return err
	}
	for _, path := range []string{m.directory(), m.lock()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sweep removes what beds that are gone have left. Those that live are left alone.
func sweep() error {
	var errs []error
	for _, path := range globbed(filepath.Join(os.TempDir(), prefix+"*.lock")) {
		f, err := hold(path, 0)
		if err != nil {
			continue // it lives, or is being removed
		}
		m := mark{name: strings.TrimSuffix(filepath.Base(path), ".lock")}
		errs = append(errs, m.remove(), f.Close())
	}
	return errors.Join(errs...)
}

func globbed(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the patterns are ours
	return found
}
