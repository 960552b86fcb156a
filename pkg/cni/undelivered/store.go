package undelivered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

// ErrFull is the error for a record if the store is full.
var ErrFull = errors.New("there are as many undelivered releases as may be")

// Store is the directory with a file for each record.
type Store struct{ nodefile.Store[Record] }

// In returns the store of a node's data directory.
func In(dataDir string) Store {
	return Store{nodefile.Store[Record]{Dir: filepath.Join(dataDir, "undelivered"), MaxSize: maxSize}}
}

// Put stores a record. It returns after the record is on disk.
func (s Store) Put(r Record) error {
	content, err := s.Encode(r)
	if err == nil {
		err = s.room(r)
	}
	if err == nil {
		err = nodefile.Keep(s.Path(r.ContainerID, r.IfName), content)
	}
	if err != nil {
		return fmt.Errorf("keep an undelivered release: %w", err)
	}
	return nil
}

// room returns ErrFull unless there is room for a record. A record that replaces an earlier one needs no room.
func (s Store) room(r Record) error {
	if _, err := os.Stat(s.Path(r.ContainerID, r.IfName)); err == nil {
		return nil
	}
	n, err := s.Len()
	if err == nil && n >= Max {
		err = fmt.Errorf("%w: %d in %s", ErrFull, n, s.Dir)
	}
	return err
}

// Forget removes the record of an attachment, if there is one, and waits for a process that is delivering it.
// Afterwards no release can free the addresses of a new ADD of the attachment.
func (s Store) Forget(ctx context.Context, id, ifName string) error {
	paths, err := s.Paths(id, ifName)
	for _, path := range paths {
		err = errors.Join(err, forget(ctx, path))
	}
	return err
}

func forget(ctx context.Context, path string) error {
	f, err := os.Open(path)
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
