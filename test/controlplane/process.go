package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// A start takes about three seconds; a busy CI machine needs more.
	startTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// readyInterval is the resolution with which a start can be measured.
	readyInterval = 10 * time.Millisecond
)

// process is a child process that can be started again, with the same ports and files.
type process struct {
	name  string
	path  string
	args  []string
	env   []string // in addition to ours
	dir   string   // working directory
	log   string   // file; output is appended
	grace time.Duration
	ready func(context.Context) error // nil: it serves

	mu  sync.Mutex
	run *run // nil while stopped
}

// run is one life of a process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // why it ended; valid after done
}

// start starts the process unless it runs, and waits until it is ready. If it does not become ready, start stops it and
// returns an error with the end of its log.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		select {
		case <-p.run.done: // it ended by itself, so the caller wants a new start
		default:
			return nil
		}
	}
	offset := fileSize(p.log)
	r, err := p.spawn()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.await(ctx, r); err != nil {
		r.end(syscall.SIGKILL, 0)
		return fmt.Errorf("%s did not become ready: %w; the end of %s:\n%s",
			p.name, err, p.log, tail(p.log, offset, 20))
	}
	p.run = r
	return nil
}

func (p *process) spawn() (*run, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own

	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Dir = p.dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()

	r := &run{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties the child to the thread that forked it, so that thread must do nothing else and live as long
		// as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			r.err = cmd.Wait()
			close(r.done)
		}
	}()
	return r, <-started
}

// await waits until the process is ready, has ended, or the time is over.
func (p *process) await(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("it ended: %w", orExited(r.err))
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// stop asks the process to end, kills it after its grace period, and waits for its end. It returns an error if the
// process had already ended by itself.
func (p *process) stop() error { return p.end(syscall.SIGTERM) }

// kill ends the process like a crash.
func (p *process) kill() error { return p.end(syscall.SIGKILL) }

func (p *process) end(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	r := p.run
	p.run = nil
	select {
	case <-r.done:
		return fmt.Errorf("%s had ended by itself: %w; the end of %s:\n%s",
			p.name, orExited(r.err), p.log, tail(p.log, 0, 20))
	default:
		r.end(sig, p.grace)
		return nil
	}
}

// end sends sig, kills the process after grace, and waits for its end.
func (r *run) end(sig syscall.Signal, grace time.Duration) {
	// An error means that it has ended. A paused process must run to handle the signal.
	_ = r.cmd.Process.Signal(sig)
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		_ = r.cmd.Process.Kill()
		<-r.done
	}
}

// signal sends sig to the running process.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return fmt.Errorf("%s is not running", p.name)
	}
	return p.run.cmd.Process.Signal(sig)
}

// pause freezes the process, and returns when all its threads have stopped: some continue for a moment after the
// signal.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return fmt.Errorf("%s has ended", p.name)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !standsStill(p.run.cmd.Process.Pid); <-tick.C {
		if time.Since(began) > startTimeout {
			return fmt.Errorf("%s does not stand still", p.name)
		}
	}
	return nil
}

// done returns a channel that is closed when the present process ends; it is closed already if there is none.
func (p *process) done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	return p.run.done
}

// orExited returns err; for nil, an error that says exit status 0.
func orExited(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tail returns the last n lines of a log after offset.
func tail(path string, offset int64, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return filepath.Base(path) + " cannot be read"
	}
	lines := strings.Split(strings.TrimRight(string(data[min(offset, int64(len(data))):]), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
