//go:build linux

package bed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Bed is a fabric with a control plane and nodes.
type Bed struct {
	// Cluster is the control plane, from Start on.
	Cluster *controlplane.ControlPlane

	mark
	dir      string   // in memory
	machine  *os.File // the network namespace of the machine
	logs     string   // the directory of the control plane's logs
	networks []string
	images   []string
	nodes    []*Node
}

// Setup is how the nodes of a bed are.
type Setup struct {
	Nodes int
	// Networks are the names of further networks, each of which a pod gets that has it as its runtimeClassName. A node
	// needs a conflist for it: WriteConflist.
	Networks []string
	// Images are further images that nodes have, as archives below bin of this module.
	Images []string
	// Prepare is called with each node before it starts. It writes a conflist at least: without one for pods by default
	// a node does not become Ready.
	Prepare func(*Node) error
}

// Prepare makes the fabric, in a process that Command started. Its clean-up is Down.
func Prepare() (*Bed, error) {
	first := 3
	if text := os.Getenv(filesEnv); text != "" {
		var err error
		if first, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("%s: %w", filesEnv, err)
		}
	}
	b := &Bed{mark: mark{name: os.Getenv(markEnv)}}
	if b.name == "" {
		return nil, errors.New("a bed is prepared in the process that Command starts")
	}
	b.dir = b.directory()
	b.held, b.machine = inherited(first, "mark"), inherited(first+1, "machine")
	return b, errors.Join(b.mount(), makeFabric())
}

// inherited returns a descriptor that this process was given. Its children do not get it: they could outlive us, and
// the mark would be held by them.
func inherited(number int, name string) *os.File {
	unix.CloseOnExec(number)
	return os.NewFile(uintptr(number), name)
}

// mount makes the mounts of this process its own, and gives it a file system in memory and the /proc of its pid
// namespace.
func (b *Bed) mount() error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	for _, m := range []mounting{
		{what: "none", on: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		{what: "proc", on: "/proc", kind: "proc"},
		{what: "tmpfs", on: b.dir, kind: "tmpfs", data: "mode=0755"},
		// Nodes have /var/lib, /opt and more for themselves, and this checkout may be there.
		{what: filepath.Join(root, "bin"), on: filepath.Join(b.dir, "bin"), flags: unix.MS_BIND},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// DataDir returns a directory in memory that goes with the bed.
func (b *Bed) DataDir() string { return filepath.Join(b.dir, "controlplane") }

// Gateway4 and Gateway6 return the addresses of the fabric itself, where the control plane listens. They are the
// default gateways of all nodes; nothing is behind them.
func (b *Bed) Gateway4() netip.Addr { return network4().Addr() }

// Gateway6 returns the IPv6 address of the fabric; see Gateway4.
func (b *Bed) Gateway6() netip.Addr { return network6().Addr() }

// Options returns how a control plane has to be started that the nodes of the bed reach, and that reaches them.
func (b *Bed) Options() []controlplane.Option {
	return []controlplane.Option{
		controlplane.WithAddress(b.Gateway4()),
		controlplane.WithDataDir(b.DataDir()),
		controlplane.WithControllerManager(),
		controlplane.WithScheduler(),
		controlplane.WithArgs("kube-apiserver",
			"--enable-admission-plugins=NodeRestriction",
			// Names of nodes are in no DNS here.
			"--kubelet-preferred-address-types=InternalIP"),
		// A node that was killed is noticed after 20 s, not 50 s.
		controlplane.WithArgs("kube-controller-manager", "--node-monitor-grace-period=20s", "--node-monitor-period=2s"),
	}
}

// attach makes a control plane that was started with Options that of the bed.
func (b *Bed) attach(cp *controlplane.ControlPlane) { b.Cluster, b.logs = cp, cp.LogDir }

// Start starts a control plane with Options and others, for programs that are no tests.
func (b *Bed) Start(ctx context.Context, more ...controlplane.Option) error {
	cp, err := controlplane.Start(ctx, append(b.Options(), more...)...)
	if err != nil {
		return err
	}
	b.attach(cp)
	return nil
}

// Up adds nodes n1, n2 and so on to the control plane, and returns when the API server has each of them Ready.
func (b *Bed) Up(ctx context.Context, s Setup) error {
	b.networks, b.images = s.Networks, s.Images
	if err := b.makeRuntimeClasses(ctx); err != nil {
		return err
	}
	for i := range s.Nodes {
		n, err := b.newNode(fmt.Sprintf("n%d", i+1), byte(11+i))
		if err != nil {
			return err
		}
		b.nodes = append(b.nodes, n)
		if err := s.Prepare(n); err != nil {
			return err
		}
	}
	starts := make(chan error, s.Nodes)
	for _, n := range b.nodes {
		go func() { starts <- n.Start(ctx) }()
	}
	var errs []error
	for range s.Nodes {
		errs = append(errs, <-starts)
	}
	return errors.Join(errs...)
}

// makeRuntimeClasses makes further networks known to the API server, in the words of which they are runtimes.
func (b *Bed) makeRuntimeClasses(ctx context.Context) error {
	admin, err := b.Cluster.Admin()
	if err != nil {
		return err
	}
	for _, name := range b.networks {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name}
		if err := admin.Create(ctx, class); err != nil {
			return fmt.Errorf("make the network %s: %w", name, err)
		}
	}
	return nil
}

// Node returns the node of a name.
func (b *Bed) Node(name string) *Node {
	for _, n := range b.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Nodes returns all nodes, n1 first.
func (b *Bed) Nodes() []*Node { return b.nodes }

// Down ends all nodes. Daemons that had ended by themselves are an error. The control plane goes on.
func (b *Bed) Down() error {
	var errs []error
	for _, n := range b.nodes {
		errs = append(errs, n.ended(), n.Kill())
	}
	return errors.Join(errs...)
}

// Close removes what the machine has of the bed. Nothing may use it any more.
func (b *Bed) Close() error {
	return errors.Join(
		unix.Unmount(filepath.Join(b.dir, "bin"), unix.MNT_DETACH), unix.Unmount(b.dir, unix.MNT_DETACH),
		b.remove(), b.machine.Close(), b.held.Close())
}
