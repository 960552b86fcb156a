package nodefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotRoots is the error for a file that a user other than root could have written or replaced.
var ErrNotRoots = errors.New("it could be somebody else's than root's")

// Roots is a directory whose files only root can have written: it and all directories above it belong to root, and
// nobody else may write them. If the process does not run as root, its own user takes root's place.
type Roots struct{ dir *os.File }

// OpenRoots opens a directory of root, which must not be a link. The error wraps fs.ErrNotExist if it does not exist.
func OpenRoots(dir string) (r Roots, err error) {
	r.dir, err = os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return r, fmt.Errorf("%s: %w: it is not a directory, or it is a link to one", dir, ErrNotRoots)
	case err != nil:
		return r, err
	}
	info, err := r.dir.Stat()
	if err == nil {
		err = errors.Join(roots(dir, info, false), rootsAbove(dir))
	}
	if err != nil {
		return r, errors.Join(err, r.dir.Close())
	}
	return r, nil
}

// Close closes the directory.
func (r Roots) Close() error { return r.dir.Close() }

// Read returns the content of a file in the directory; nil if there is no such file. limit bounds the size in octets.
// Links, and files that others may write, are refused.
func (r Roots) Read(name string, limit int) ([]byte, error) {
	path := filepath.Join(r.dir.Name(), name)
	fd, err := unix.Openat(int(r.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: %w: it is a link", path, ErrNotRoots)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err == nil {
		err = roots(path, info, false)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("%s has more than %d octets", path, limit)
	}
	return text, err
}

// rootsAbove returns an error unless each directory above a path belongs to root. Links in the path must belong to
// root, too.
func rootsAbove(dir string) error {
	for at := filepath.Clean(dir); at != filepath.Dir(at); {
		at = filepath.Dir(at)
		link, err := os.Lstat(at)
		if err != nil {
			return err
		}
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if err := errors.Join(owned(at, link), roots(at, info, true)); err != nil {
			return err
		}
	}
	return nil
}

// roots returns an error unless a file or directory belongs to root and nobody else may write it. sticky also allows a
// directory such as /tmp, in which nobody can replace another user's files.
func roots(path string, info fs.FileInfo, sticky bool) error {
	if err := owned(path, info); err != nil {
		return err
	}
	if sticky && info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 || mode&0o020 != 0 && group(info) != 0 {
		return fmt.Errorf("%s: %w: its mode is %s; hint: chmod go-w %s", path, ErrNotRoots, info.Mode(), path)
	}
	return nil
}

func owned(path string, info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: its owner is user %d; hint: chown root %s", path, ErrNotRoots, s.Uid, path)
	}
	return nil
}

func group(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Gid
	}
	return 0
}
