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

// ErrRefused is the error of a delivery that will never be accepted.
var ErrRefused = errors.New("the allocator refuses it for good")

// ErrLater is the error of a delivery to try again later, while other records can be delivered.
var ErrLater = errors.New("the allocator does not take it yet")

// Drained is the outcome for one record.
type Drained struct {
	// File is the name of the record's file, and Record its content; the zero Record for a damaged file.
	File   string
	Record Record
	// Err is the reason why the record was dropped without delivery; nil if it was delivered.
	Err error
}

// errUnreadable is the error for a file that cannot be read. Other files may be readable.
var errUnreadable = errors.New("an undelivered release cannot be read")

// Drain delivers at most the given number of records, and returns the outcome of each one that no longer exists. It
// ends early at the first error that would also affect the other records. Files that cannot be read stay, and are
// reported as an error at the end. Records that another process is delivering stay with that process. A record of
// another cluster is dropped, because its container does not belong to this cluster.
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

// deliver delivers one record while its file is locked, and reports whether the record is gone.
func (s Store) deliver(
	ctx context.Context, name, cluster string, deliver func(context.Context, Record) error,
) (d Drained, gone bool, err error) {
	path := filepath.Join(s.Dir, name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil // another process delivered it
	}
	if err != nil {
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return d, false, nil // another process is delivering it
	}
	mine, err := f.Stat()
	if err != nil {
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(mine, now) {
		return d, false, nil // it was delivered or replaced before the lock was taken
	}
	d.File = name
	d.Record, err = s.LoadFrom(f)
	switch {
	case errors.Is(err, nodefile.ErrDamaged):
		d.Record, d.Err = Record{}, err
	case err != nil:
		return d, false, fmt.Errorf("%w: %w", errUnreadable, err)
	case d.Record.Cluster != "" && cluster == "":
		return d, false, nil // a later call that knows the cluster delivers it
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
