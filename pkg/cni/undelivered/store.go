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

// ErrFull is the error of a record for which there is no room.
var ErrFull = errors.New("there are as many undelivered releases as may be")

// Store is the directory with a file for each record.
type Store struct{ nodefile.Store[Record] }

// In returns the store of a node's data directory.
func In(dataDir string) Store {
	return Store{nodefile.Store[Record]{Dir: filepath.Join(dataDir, "undelivered"), MaxSize: maxSize}}
}

// Put keeps a record. It returns when the record is on the disk.
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

// room returns ErrFull unless there is room for a record. One that replaces an earlier one needs none.
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

// Forget removes the record of an attachment, if there is one, and waits for whoever delivers it just now. After that
// nothing releases what a new ADD of the attachment takes.
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
