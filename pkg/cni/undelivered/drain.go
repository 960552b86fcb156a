package undelivered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// ErrRefused is the error of a delivery that will never be taken.
var ErrRefused = errors.New("the allocator refuses it for good")

// ErrLater is the error of a delivery that is to be tried another time, while others can be delivered.
var ErrLater = errors.New("the allocator does not take it yet")

// Drained is what became of a record.
type Drained struct {
	// File is the name of its file, and Record what it says; the zero Record of a damaged file.
	File   string
	Record Record
	// Err is why it was dropped without a delivery; nil where it was delivered.
	Err error
}

// errUnreadable is the error of a file that cannot be read. Others can be.
var errUnreadable = errors.New("an undelivered release cannot be read")

// Drain delivers records, at most so many of them, and returns what became of each one that is not there any more. It
// ends early with the first error that the others would have, too; files that cannot be read stay, and are an error at
// the end. Records that somebody else delivers just now stay his. A record of another cluster is dropped: its
// container is none of this one.
func (s Store) Drain(
	ctx context.Context, cluster string, most int, deliver func(context.Context, Record) error,
) (all []Drained, err error) {
	names, err := s.Names()
	if err != nil {
		return nil, fmt.Errorf("read the undelivered releases: %w", err)
	}
	var unread error
	for _, name := range names {
		if len(all) == most || ctx.Err() != nil {
			return all, errors.Join(unread, ctx.Err())
		}
		switch d, gone, err := s.deliver(ctx, name, cluster, deliver); {
		case errors.Is(err, errUnreadable):
			unread = errors.Join(unread, err)
		case err != nil:
			return all, errors.Join(unread, err)
		case gone:
			all = append(all, d)
		}
	}
	return all, unread
}

// deliver delivers one record, with its file locked, and reports whether it is gone.
func (s Store) deliver(
	ctx context.Context, name, cluster string, deliver func(context.Context, Record) error,
) (d Drained, gone bool, err error) {
	path := filepath.Join(s.Dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil // somebody else delivered it
	}
	if err != nil {
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return d, false, nil // somebody else is at it
	}
	mine, err := f.Stat()
	if err != nil {
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(mine, now) {
		return d, false, nil // it was delivered or replaced before the lock was there
	}
	d.File = name
	d.Record, err = s.LoadFrom(f)
	switch {
	case errors.Is(err, nodefile.ErrDamaged):
		d.Record, d.Err = Record{}, err
	case err != nil:
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	case d.Record.Cluster != "" && cluster == "":
		return d, false, nil // whoever knows its cluster delivers it
	case d.Record.Cluster != "" && d.Record.Cluster != cluster:
		d.Err = fmt.Errorf("it is of cluster %s, and this is %s", d.Record.Cluster, cluster)
	default:
		err = deliver(ctx, d.Record)
		if errors.Is(err, ErrLater) {
			return d, false, nil
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			return d, false, err
		}
		d.Err = err
	}
	failpoint.Kill("ipam-record-delivered")
	if err := os.Remove(path); err != nil {
		return d, false, fmt.Errorf("remove an undelivered release: %w", err)
	}
	return d, true, nil
}
