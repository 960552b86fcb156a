package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// patience is the time that the supervisor may take to stop everything in order.
const patience = time.Minute

// down stops what up started, waits until it is gone, and removes its files.
func down(ctx context.Context, o options) error {
	lock, err := o.lock()
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "✔ nothing is up")
		return nil
	}
	if errors.Is(err, errHeld) {
		fmt.Fprintln(os.Stderr, "► stopping")
		lock, err = stopSupervisor(ctx, o)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := o.removeFiles(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "✔ down, %s is removed\n", shorten(o.dir))
	return nil
}

// removeFiles removes what an up made. A directory below it that has a lock of its own is that of another one.
func (o options) removeFiles() error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	others := false
	for _, e := range entries {
		path := o.file(e.Name())
		if _, err := os.Stat(filepath.Join(path, "lock")); err == nil {
			others = true
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if others {
		return nil
	}
	return os.Remove(o.dir)
}

// stopSupervisor returns with the lock: then the supervisor and all its children are gone.
func stopSupervisor(ctx context.Context, o options) (*os.File, error) {
	pid, err := o.pid()
	if err != nil {
		return nil, fmt.Errorf("something holds %s, but not a supervisor that we know: %w", o.file("lock"), err)
	}
	// An error means that it has just gone; the lock shows.
	_ = syscall.Kill(pid, syscall.SIGTERM)
	kill := time.NewTimer(patience)
	defer kill.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := o.tryLock()
		if !errors.Is(err, errHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-kill.C:
			_ = syscall.Kill(pid, syscall.SIGKILL)
		case <-tick.C:
		}
	}
}
