package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// state is what a running supervisor publishes for the other verbs. Its file exists while everything is up.
type state struct {
	APIServer string   `json:"apiServer"`
	URL       string   `json:"url,omitempty"`     // allocator API; empty without a controller
	Metrics   string   `json:"metrics,omitempty"` // base URL
	Health    string   `json:"health,omitempty"`  // base URL
	Nodes     []string `json:"nodes,omitempty"`   // real ones
	Path      []string `json:"path"`              // directories of our binaries
}

func (o options) file(name string) string { return filepath.Join(o.dir, name) }

func (o options) readState() (s state, err error) {
	data, err := os.ReadFile(o.file("state.json"))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

// publish writes the file to source, then the state: from then on we are up.
func (o options) publish(s state) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	s.Path = []string{filepath.Join(root, "bin"), filepath.Join(root, "bin", "kube")}
	var env strings.Builder
	fmt.Fprintf(&env, "export KUBECONFIG=%s\n", quote(o.file("kubeconfig")))
	if s.URL != "" {
		fmt.Fprintf(&env, "export BCSNET_URL=%s\n", s.URL)
	}
	fmt.Fprintf(&env, "export PATH=%s:\"$PATH\"\n", quote(strings.Join(s.Path, ":")))
	if err := replace(o.file("env"), []byte(env.String())); err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replace(o.file("state.json"), data)
}

// unpublish removes what a supervisor that was killed could not.
func (o options) unpublish() error {
	for _, name := range []string{"state.json", "env", "pid"} {
		if err := os.Remove(o.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pid returns the supervisor's process ID; it means nothing once that has ended.
func (o options) pid() (int, error) {
	data, err := os.ReadFile(o.file("pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// errHeld means that a supervisor is alive.
var errHeld = errors.New("the lock is held")

// lock takes the lock of the directory. The supervisor and all its children inherit it, and the kernel gives it back
// when the last of them is gone: a free lock means that nothing runs.
func (o options) lock() (*os.File, error) {
	// Children of a supervisor that was killed need a moment to die, a new one needs one to say so.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		f, err := o.tryLock()
		if !errors.Is(err, errHeld) || o.supervised() || time.Now().After(deadline) {
			return f, err
		}
	}
}

func (o options) tryLock() (*os.File, error) {
	for {
		f, err := os.OpenFile(o.file("lock"), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				err = errHeld
			}
			return nil, err
		}
		if o.current(f) {
			return f, nil
		}
		f.Close()
	}
}

// current reports whether f is still the file of the lock: `down` removes that while it holds the lock.
func (o options) current(f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(f.Name())
	return err == nil && os.SameFile(ours, now)
}

// supervised reports whether the supervisor itself is alive. It alone holds a lock on its pid file, and the kernel
// takes that back before anyone sees it dead.
func (o options) supervised() bool {
	f, err := os.Open(o.file("pid"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// claim writes our process ID and holds the file's lock until it is closed, or we end.
func (o options) claim() (*os.File, error) {
	f, err := os.Create(o.file("pid"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The number by which others know us. In a pid namespace it is not that by which we do.
	pid := strconv.Itoa(os.Getpid())
	if outside, err := os.Readlink("/proc/self"); err == nil {
		pid = outside
	}
	if _, err := fmt.Fprintln(f, pid); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// createLock makes sure that there is a lock to take.
func (o options) createLock() error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(o.file("lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// replace writes a file so that readers see the old or the new content, never a part.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// quote returns s as one word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
