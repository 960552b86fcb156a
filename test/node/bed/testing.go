//go:build linux

package bed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Shared is the bed of a package's tests.
type Shared struct {
	bed *Bed
	why error // why there is none
}

// For returns the bed, or skips the test where the machine can have none.
func (s *Shared) For(t testing.TB) *Bed {
	t.Helper()
	if s.bed == nil {
		t.Skipf("skipped: %v", s.why)
	}
	return s.bed
}

// Main runs the tests of a package with one control plane and the same nodes for all of them, and returns the exit
// code. setUp is called with the control plane before there are nodes; what it returns is called after the tests.
//
// The tests run in a process of their own, in the fabric, which is started by this one and has the same arguments.
// Where a bed cannot be made, the tests run without one, and Shared skips them.
func (s *Shared) Main(
	m *testing.M, nodes Setup, setUp func(context.Context, *Bed) (tearDown func() error, err error),
) int {
	RunNode()
	flag.Parse()
	if !Inside() {
		if s.why = Available(); s.why != nil {
			return m.Run()
		}
		code, err := enter()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}
	// These tests wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b, err := Prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.bed = b
	code := controlplane.MainWith(m, func(ctx context.Context, cp *controlplane.ControlPlane) (func() error, error) {
		b.attach(cp)
		tearDown, err := setUp(ctx, b)
		if err != nil {
			return nil, err
		}
		end := func() error { return errors.Join(b.Down(), tearDown()) }
		if err := b.Up(ctx, nodes); err != nil {
			return nil, errors.Join(err, end())
		}
		return end, nil
	}, b.Options()...)
	if err := b.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// enter runs the tests in the fabric and returns their exit code. They end with us, however we end.
func enter() (int, error) {
	cmd, err := Command(os.Args[1:]...)
	if err != nil {
		return 1, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// The kernel ties the child to this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The time limit of go test comes as SIGQUIT: the tests print their goroutines.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the mark is held by the bed alone
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	// What the tests left is removed at once where they could not do it themselves.
	sweepErr := sweep()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), sweepErr
	}
	return 0, errors.Join(err, sweepErr)
}
