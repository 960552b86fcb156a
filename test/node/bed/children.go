//go:build linux

package bed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Daemon is a program that a node runs for as long as it is up, under a name of its own.
type Daemon struct {
	Name string
	Args []string // with the program
	Log  string   // a file; output is appended
}

// Call is a command that a node runs to its end.
type Call struct {
	Args  []string // with the program
	Env   []string // in addition to the node's, KEY=value
	Input []byte
}

// Result is what came of a Call.
type Result struct {
	Output, Errors []byte
	Code           int // the exit code; 128 and the signal where one ended it
}

// children are the processes of a node whose parent is process 1: those that it starts, and orphans, which it has to
// wait for like any process 1.
type children struct {
	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
	daemons map[string]*running
}

// running is a daemon in one of its lives.
type running struct {
	pid    int
	done   chan struct{}
	status unix.WaitStatus // valid after done
	killed bool            // by us
}

func newChildren() *children {
	c := &children{waiting: map[int]chan unix.WaitStatus{}, daemons: map[string]*running{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCHLD)
	go func() {
		for range signals {
			c.reap()
		}
	}()
	return c
}

// reap waits for all children that have ended. One signal may stand for several of them.
func (c *children) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		c.mu.Lock()
		if waits := c.waiting[pid]; waits != nil {
			waits <- status
			delete(c.waiting, pid)
		}
		c.mu.Unlock()
	}
}

// start starts a program. Its end is sent to the channel.
func (c *children) start(args, env []string, files ...*os.File) (int, <-chan unix.WaitStatus, error) {
	path := args[0]
	if !strings.Contains(path, "/") {
		var err error
		if path, err = exec.LookPath(path); err != nil {
			return 0, nil, err
		}
	}
	c.mu.Lock() // the end of the process is looked at when it is in the table
	defer c.mu.Unlock()
	p, err := os.StartProcess(path, args, &os.ProcAttr{Env: env, Files: files})
	if err != nil {
		return 0, nil, err
	}
	ends := make(chan unix.WaitStatus, 1)
	pid := p.Pid // Release forgets it
	c.waiting[pid] = ends
	return pid, ends, p.Release()
}

func (c *children) daemon(d Daemon, env []string) (int, error) {
	if r := c.named(d.Name); r != nil && !r.gone() {
		return 0, fmt.Errorf("%s runs already", d.Name)
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	pid, ends, err := c.start(d.Args, env, nil, log, log)
	if err != nil {
		return 0, err
	}
	r := &running{pid: pid, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.daemons[d.Name] = r
	go func() {
		r.status = <-ends
		close(r.done)
	}()
	return pid, nil
}

func (c *children) named(name string) *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.daemons[name]
}

func (r *running) gone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (c *children) kill(name string) error {
	r := c.named(name)
	if r == nil || r.gone() {
		return fmt.Errorf("%s does not run", name)
	}
	c.mu.Lock()
	r.killed = true
	c.mu.Unlock()
	err := unix.Kill(r.pid, unix.SIGKILL)
	<-r.done
	return err
}

func (c *children) ended() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range c.daemons {
		if r.gone() && !r.killed {
			names = append(names, fmt.Sprintf("%s (exit code %d)", name, code(r.status)))
		}
	}
	return names
}

// run runs a command to its end. Its streams are files, which need nobody to copy them.
func (c *children) run(dir string, call Call, env []string) (r Result, err error) {
	scratch, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(scratch)
	names := []string{"stdin", "stdout", "stderr"}
	var files []*os.File
	for i, name := range names {
		path := filepath.Join(scratch, name)
		if i == 0 {
			err = os.WriteFile(path, call.Input, 0o600)
		}
		f, openErr := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err = errors.Join(err, openErr); err != nil {
			return r, err
		}
		defer f.Close() //nolint:gocritic // three of them, until the command has ended
		files = append(files, f)
	}
	_, ends, err := c.start(call.Args, env, files...)
	if err != nil {
		return r, err
	}
	r.Code = code(<-ends)
	if r.Output, err = os.ReadFile(files[1].Name()); err == nil {
		r.Errors, err = os.ReadFile(files[2].Name())
	}
	return r, err
}

func code(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
