//go:build linux

package bed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// markEnv has the mark of the bed for the process in the fabric.
	markEnv = "BCSNET_BED"
	// filesEnv has the number of the first of two descriptors there: the file whose lock holds the mark, and the
	// machine's own network namespace.
	filesEnv = "BCSNET_BED_FILES"
)

// binaries are what nodes run, below bin of this module.
var binaries = []string{
	"node/kubelet", "node/containerd", "node/containerd-shim-runc-v2", "node/ctr", "node/runc", "node/podtool.tar",
	"cni/bridge", "cni/loopback", "cni/host-local",
}

// Available returns nil when beds can be made here, else why they cannot.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root")
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	for _, name := range binaries {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("%w; hint: run `make node`", err)
		}
	}
	for _, dir := range hidden {
		if strings.HasPrefix(os.TempDir()+"/", dir+"/") {
			return fmt.Errorf("%s is where nodes have a directory of their own; hint: set TMPDIR", os.TempDir())
		}
	}
	if len(hierarchies()) == 0 {
		return fmt.Errorf("there are no cgroups below %s", cgroupRoot)
	}
	// A container without CAP_SYS_ADMIN, or with a filter, may make none.
	probe := exec.Command("/proc/self/exe")
	probe.Env = append(os.Environ(), nodeEnv+"="+nobody)
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if out, err := probe.CombinedOutput(); err != nil {
		return fmt.Errorf("this machine lets no namespaces be made: %w: %s", err, out)
	}
	return nil
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Command prepares a call of this program in the fabric of a new bed, where Inside is true. All that it starts ends
// with it. What beds that are gone left behind is removed first.
func Command(args ...string) (*exec.Cmd, error) {
	if err := sweep(); err != nil {
		return nil, fmt.Errorf("remove what an earlier bed left: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m, err := newMark()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	network, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), markEnv+"="+m.name)
	cmd.ExtraFiles = []*os.File{m.held, network}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	return cmd, nil
}

// Pass adds files that the process in the fabric has at the descriptors from 3 on, before those of the bed.
func Pass(cmd *exec.Cmd, files ...*os.File) {
	cmd.ExtraFiles = append(files, cmd.ExtraFiles...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", filesEnv, 3+len(files)))
}

// Inside reports whether this process was started by Command.
func Inside() bool { return os.Getenv(markEnv) != "" }

// OnMachine listens on a free port of the machine's own loopback, outside of the fabric.
func (b *Bed) OnMachine() (listener net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is in another namespace from here on: it ends with this goroutine, and is not used for others.
		runtime.LockOSThread()
		if err = unix.Setns(int(b.machine.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}()
	<-done
	return listener, err
}
