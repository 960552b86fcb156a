//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// pty is a terminal and what was written on it.
type pty struct {
	master, slave *os.File
	mu            sync.Mutex
	text          strings.Builder
	ended         chan struct{} // closed when nobody writes any more
}

func newPTY(t *testing.T, width, height uint16) *pty {
	t.Helper()
	p, err := openPTY(width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.master.Close() })
	t.Cleanup(func() { p.slave.Close() })
	return p
}

// openPTY opens a terminal. Who calls closes both ends.
func openPTY(width, height uint16) (*pty, error) {
	p := &pty{ended: make(chan struct{})}
	var err error
	if p.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, err
	}
	fd := int(p.master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
	}
	if err == nil {
		p.slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, errors.Join(err, p.master.Close())
	}
	go func() {
		defer close(p.ended)
		part := make([]byte, 4096)
		for {
			n, err := p.master.Read(part)
			p.mu.Lock()
			p.text.Write(part[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p, nil
}

// shown is what is on the terminal since the last drawing began.
func (p *pty) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text.String()
	return text[max(0, strings.LastIndex(text, "ADDRESS")):]
}

// echoes reports whether the terminal shows what is typed.
func (p *pty) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// TestWatchOnTerminal: a small terminal shows what is new, not what is typed, and q ends the list.
func TestWatchOnTerminal(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	for i := 20; i < 40; i++ {
		f.haveLease(t, fmt.Sprint("10.1.0.", i), "10.0.0.11", fmt.Sprint("vm-", i))
	}
	p := newPTY(t, 80, 10)
	cmd := f.command(t, "lease", "list", "-w")
	cmd.Env = append(cmd.Env, rawEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			if ok() {
				return nil
			}
			return fmt.Errorf("%s: it shows %q", what, p.shown())
		})
	}
	until("the list", func() bool { return strings.Contains(p.shown(), "13 more; 20 addresses in use") })
	if p.echoes(t) {
		t.Error("it echoes what is typed")
	}
	f.haveLease(t, "10.1.0.99", "10.0.0.11", "vm-99")
	until("a new lease", func() bool {
		text := p.shown()
		return strings.Contains(text, "14 more; 21 addresses in use") && strings.Contains(text, "10.1.0.99")
	})
	f.haveLease(t, "10.1.0.39", "10.0.0.12", "vm-39")
	until("a changed lease", func() bool {
		text := p.shown()
		at, after := strings.Index(text, "10.1.0.39"), strings.Index(text, "10.1.0.99")
		return at >= 0 && at < after
	})
	if _, err := io.WriteString(p.master, "xq"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !p.echoes(t) {
		t.Error("the terminal is not as it was")
	}
}
