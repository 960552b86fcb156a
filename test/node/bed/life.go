//go:build linux

package bed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// startTimeout bounds the start of a node, which takes 3 s on an idle machine.
const startTimeout = 2 * time.Minute

// socket is where containerd listens, in a node.
const socket = "/run/containerd/containerd.sock"

// life is a node between a start and its end.
type life struct {
	process1 *os.Process
	done     chan struct{} // closed when all processes of the node are gone
	began    time.Time     // in whole seconds, as the times of conditions are
	orders   *rpc.Client
}

// Start boots the node and returns when the API server has it Ready. It is an error when the node is up.
func (n *Node) Start(ctx context.Context) error {
	if n.life != nil {
		return fmt.Errorf("the node %s is up", n.Name)
	}
	ctx, stop := context.WithTimeout(ctx, startTimeout)
	defer stop()
	err := n.boot(ctx)
	if err == nil {
		err = n.awaitReady(ctx)
	}
	if err != nil {
		return fmt.Errorf("start the node %s: %w; hint: see %s", n.Name, err, n.log("*"))
	}
	return nil
}

// boot starts process 1 and has it start the rest.
func (n *Node) boot(ctx context.Context) error {
	if err := makeCgroup(n.Cgroup); err != nil {
		return err
	}
	if err := n.spawn(); err != nil {
		return err
	}
	if err := plug(n.Name, n.life.process1.Pid); err != nil {
		return err
	}
	if err := n.order(ctx, "Boot", n.Config, &struct{}{}); err != nil {
		return err
	}
	if err := n.StartContainerd(ctx); err != nil {
		return err
	}
	for _, archive := range append([]string{"node/podtool.tar"}, n.bed.images...) {
		if err := n.importImage(ctx, filepath.Join(n.bed.dir, "bin", archive)); err != nil {
			return err
		}
	}
	return n.StartKubelet(ctx)
}

// importImage gives the node an image. One that it got in an earlier life changes nothing.
func (n *Node) importImage(ctx context.Context, archive string) error {
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("import an image: %w; hint: run `make build node`", err)
	}
	r, err := n.Run(ctx, Call{Args: []string{filepath.Join(n.Bin, "ctr"), "-n", "k8s.io", "images", "import", archive}})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("exit code %d: %s", r.Code, r.Errors)
	}
	if err != nil {
		return fmt.Errorf("import the image %s: %w", filepath.Base(archive), err)
	}
	return nil
}

// spawn starts process 1 in namespaces of the node. The kernel ends it when the thread ends that started it, so that
// one waits for it and does nothing else.
func (n *Node) spawn() error {
	ours, theirs, err := pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	log, err := os.OpenFile(n.log("init"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), nodeEnv+"="+n.Name, markEnv+"=")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l := &life{done: make(chan struct{}), began: time.Now().Truncate(time.Second), orders: rpc.NewClient(ours)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // killed, as a rule
			close(l.done)
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("start process 1: %w", err), l.orders.Close())
	}
	l.process1 = cmd.Process
	n.life = l
	return nil
}

// pair returns the two ends of the connection by which a node gets its orders.
func pair() (net.Conn, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours := os.NewFile(uintptr(ends[0]), "orders")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	return conn, os.NewFile(uintptr(ends[1]), "orders"), err
}

// order has process 1 do something.
func (n *Node) order(ctx context.Context, verb string, args, reply any) error {
	if n.life == nil {
		return fmt.Errorf("the node %s is down", n.Name)
	}
	call := n.life.orders.Go("Node."+verb, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return fmt.Errorf("%s on %s: %w", verb, n.Name, context.Cause(ctx))
	}
}

// Run runs a command on the node to its end, in all of its namespaces. An exit code is no error.
func (n *Node) Run(ctx context.Context, c Call) (r Result, err error) {
	err = n.order(ctx, "Run", c, &r)
	return r, err
}

// StartContainerd starts containerd and returns when it answers.
func (n *Node) StartContainerd(ctx context.Context) error {
	d := Daemon{Name: "containerd", Log: n.log("containerd"), Args: []string{
		filepath.Join(n.Bin, "containerd"), "--config", n.conf("containerd.toml"),
	}}
	if err := n.order(ctx, "Start", d, new(int)); err != nil {
		return err
	}
	// The socket as its file in the node's namespace, seen from here.
	path := fmt.Sprintf("/proc/%d/root%s", n.life.process1.Pid, socket)
	return controlplane.WaitFor(ctx, startTimeout, func() error {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// KillContainerd ends containerd with SIGKILL. Containers live on, and so do plugins that it has started.
func (n *Node) KillContainerd(ctx context.Context) error {
	return n.order(ctx, "Kill", "containerd", &struct{}{})
}

// StartKubelet starts the kubelet.
func (n *Node) StartKubelet(ctx context.Context) error {
	d := Daemon{Name: "kubelet", Log: n.log("kubelet"), Args: []string{
		filepath.Join(n.Bin, "kubelet"), "--config", n.conf("kubelet.yaml"), "--kubeconfig", n.conf("kubeconfig"),
		"--hostname-override", n.Name, "--node-ip", n.Address4.Addr().String() + "," + n.Address6.Addr().String(),
		"--v=2",
	}}
	return n.order(ctx, "Start", d, new(int))
}

// KillKubelet ends the kubelet with SIGKILL. Containers live on.
func (n *Node) KillKubelet(ctx context.Context) error {
	return n.order(ctx, "Kill", "kubelet", &struct{}{})
}

// Kill ends the node as a power cut would, with all that runs on it, and returns when nothing of it runs any more. Its
// disks stay as they are. It does nothing where the node is down.
func (n *Node) Kill() error {
	if n.life == nil {
		return nil
	}
	err := n.life.process1.Kill()
	<-n.life.done
	err = errors.Join(err, n.life.orders.Close(), unplug(n.Name), removeCgroups(n.Cgroup))
	n.life = nil
	return err
}

// ended returns an error where daemons have ended by themselves.
func (n *Node) ended() error {
	if n.life == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var names []string
	if err := n.order(ctx, "Ended", struct{}{}, &names); err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("on the node %s ended by themselves: %s; hint: see %s",
			n.Name, strings.Join(names, ", "), n.log("*"))
	}
	return nil
}

func (n *Node) log(name string) string { return filepath.Join(n.logs, n.Name+"-"+name+".log") }

// awaitReady returns when the API server has the node Ready by a status that is not older than its start.
func (n *Node) awaitReady(ctx context.Context) error {
	admin, err := n.bed.Cluster.Admin()
	if err != nil {
		return err
	}
	return controlplane.WaitFor(ctx, startTimeout, func() error { return n.Ready(ctx, admin) })
}
