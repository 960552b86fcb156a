package nodefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

const (
	// beside begins the names of files that are not in their place yet.
	beside = ".new-"
	// oldest is the age from which on such a file is one that a process left which was killed.
	oldest = time.Hour
)

// Replace writes a file, with mode 0600, in the place of an earlier one, and makes its directory. Whoever reads
// meanwhile gets one of the two.
func Replace(path string, content []byte) error { return write(path, content, false) }

// Keep does what Replace does, and returns when the file and its name are on the disk.
func Keep(path string, content []byte) error { return write(path, content, true) }

func write(path string, content []byte, durable bool) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := sweep(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(dir, beside+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		failpoint.Kill("ipam-file-written")
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	if !durable {
		return nil
	}
	if err := sync(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// sync writes the names in a directory to the disk.
func sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sweep removes what processes left that were killed.
func sweep(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		left := filepath.Join(path, name)
		if !strings.HasPrefix(name, beside) {
			continue
		}
		if info, err := os.Lstat(left); err == nil && time.Since(info.ModTime()) > oldest {
			_ = os.Remove(left) // the next one tries again
		}
	}
	return errors.Join(err, dir.Close())
}
