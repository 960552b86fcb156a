package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// file describes the required state of a file on the node.
type file struct {
	dir, name string
	content   []byte
	mode      fs.FileMode
}

func (f file) path() string { return filepath.Join(f.dir, f.name) }

// inPlace reports whether the file exists in its required state.
func (f file) inPlace() (bool, error) {
	info, err := os.Lstat(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.Mode() != f.mode || info.Size() != int64(len(f.content)) { // a link is not ours
		return false, err
	}
	content, err := os.ReadFile(f.path())
	return err == nil && bytes.Equal(content, f.content), err
}

// write writes the file unless it already is in its required state, and reports whether it wrote. A concurrent reader,
// and a node that loses its power, have the earlier file or this one. The temporary file always has the same name, so
// that processes that are killed often do not fill the disk. No runtime takes it for a configuration.
func (f file) write() (bool, error) {
	done, err := f.inPlace()
	if err != nil || done {
		return false, err
	}
	beside := filepath.Join(f.dir, "."+f.name+".new")
	err = writeNew(beside, f.content, f.mode)
	if err == nil {
		err = os.Rename(beside, f.path())
	}
	if err != nil {
		_ = os.Remove(beside) // the next write replaces it
		return false, err
	}
	return true, syncDir(f.dir)
}

// writeNew writes a file and replaces one that a killed process left behind. It returns after the file is on disk.
func writeNew(path string, content []byte, mode fs.FileMode) error {
	if err := removeAll(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // independent of the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeAll removes files and syncs that to disk. Files that do not exist are not an error.
func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := syncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// makeDir creates a directory that only root can read.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return os.Chmod(path, 0o700) //nolint:gosec // a directory has to be entered
}

// lock lets only one process change the node: an ending pod may still run when the next one starts.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another process installs here: lock %s: %w", dir, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
