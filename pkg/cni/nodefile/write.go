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
	// beside is the prefix of temporary file names.
	beside = ".new-"
	// oldest is the age after which a temporary file counts as left behind by a killed process.
	oldest = time.Hour
)

// Replace writes a file with mode 0600 and replaces an earlier one. It creates the directory if necessary. A concurrent
// reader gets the old or the new content.
func Replace(path string, content []byte) error { return write(path, content, false) }

// Keep does the same as Replace, and returns after the file and its name are on disk.
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

// sync writes the names in a directory to disk.
func sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sweep removes files that killed processes left behind.
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
