package undelivered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

// ErrFull is the error of a record for which there is no room.
var ErrFull = errors.New("there are as many undelivered releases as may be")

// Store is the directory with a file ID-IF.json for each record.
type Store string

// In returns the store of a node's data directory.
func In(dataDir string) Store { return Store(filepath.Join(dataDir, "undelivered")) }

// Put keeps a record. It returns when the record is on the disk.
func (s Store) Put(r Record) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("keep an undelivered release: %w", err)
	}
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep an undelivered release: %w", err)
	}
	if err := s.room(r); err != nil {
		return err
	}
	if err := nodefile.Keep(s.path(r.ContainerID, r.IfName), content); err != nil {
		return fmt.Errorf("keep an undelivered release: %w", err)
	}
	return nil
}

// room returns ErrFull unless there is room for a record. One that replaces an earlier one needs none.
func (s Store) room(r Record) error {
	if _, err := os.Stat(s.path(r.ContainerID, r.IfName)); err == nil {
		return nil
	}
	names, err := s.names()
	if err != nil {
		return fmt.Errorf("count the undelivered releases: %w", err)
	}
	if len(names) >= Max {
		return fmt.Errorf("%w: %d in %s", ErrFull, len(names), s)
	}
	return nil
}

// names returns the names of the files of records.
func (s Store) names() (names []string, err error) {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Len counts the records.
func (s Store) Len() (int, error) {
	names, err := s.names()
	return len(names), err
}

// Forget removes the record of an attachment, if there is one, and waits for whoever delivers it just now. After that
// nothing releases what a new ADD of the attachment takes.
func (s Store) Forget(ctx context.Context, id, ifName string) error {
	f, err := os.Open(s.path(id, ifName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s: %w", f.Name(), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
