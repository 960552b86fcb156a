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
	// A start takes three seconds; a busy CI machine gets much more before we call it failed.
	startTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// readyInterval is how exactly the time of a start can be measured.
	readyInterval = 10 * time.Millisecond
)

// process is one child that can be started again after it ended, on the same ports and files.
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
	done chan struct{} // closed when the process is gone
	err  error         // why it ended; valid after done
}

// start starts the process unless it runs, and waits until it is ready. When it does not become so
// it is stopped, and the error shows the end of its log.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		select {
		case <-p.run.done: // ended by itself: a new start is what the caller wants
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
		// The kernel ties the child to the thread that forked it, not to the process:
		// that thread must live, and do nothing else, as long as the child does.
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

// await polls until the process is ready, has ended, or the time is up.
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

// stop asks the process to end, kills it after its grace period, and waits until it is gone. A
// process that had ended by itself is an error: whoever relied on it should know.
func (p *process) stop() error { return p.end(syscall.SIGTERM) }

// kill ends the process as a crash would.
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

// end delivers sig, kills what is still there after grace, and returns when it is gone.
func (r *run) end(sig syscall.Signal, grace time.Duration) {
	// Errors mean that it is gone already. A paused process has to run to see the signal.
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

// pause freezes the process, and returns when all its threads stand still: some go on for a while after the signal.
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

// done returns a channel that is closed when the present life of the process ends; at once when there is none.
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

// orExited names the end of a process whose exit status was 0.
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

// tail returns the last n lines of what a log holds after offset.
func tail(path string, offset int64, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return filepath.Base(path) + " cannot be read"
	}
	lines := strings.Split(strings.TrimRight(string(data[min(offset, int64(len(data))):]), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
