//go:build linux

package bed

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// nodeEnv is set where this program is the process of ID 1 of a node.
	nodeEnv = "BCSNET_BED_NODE"
	// nobody is the node that ends at once: it shows that namespaces can be made.
	nobody = "-"
	// orders is the descriptor from which process 1 takes orders.
	orders = 3
	// uplink is the link of a node that the fabric makes, and nodeBridge the bridge whose port it is. The bridge has
	// the node's address; pods become ports of it, or have macvlan links of it.
	uplink, nodeBridge = "eth0", "br0"
)

// RunNode does the work of process 1 of a node where this program was started for that, and does not return then.
// Programs that use a bed call it before all else.
func RunNode() {
	name := os.Getenv(nodeEnv)
	if name == "" {
		return
	}
	if name != nobody {
		if err := serveOrders(); err != nil {
			fmt.Fprintln(os.Stderr, "bed:", name, err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// serveOrders takes orders until whoever gives them is gone.
func serveOrders() error {
	unix.CloseOnExec(orders)
	file := os.NewFile(orders, "orders")
	conn, err := net.FileConn(file)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Unsetenv(nodeEnv); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Node", &Process1{children: newChildren()}); err != nil {
		return err
	}
	server.ServeConn(conn)
	return nil
}

// Process1 is the process of ID 1 of a node, as its orders see it. It is exported for net/rpc alone, as the orders are.
type Process1 struct {
	children *children
	config   Config
}

// Boot makes the mounts and the network of the node.
func (p *Process1) Boot(c Config, _ *struct{}) error {
	p.config = c
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return err
	}
	if err := mountAll(c.Dir); err != nil {
		return err
	}
	return c.network()
}

// network makes the bridge of the node, with its uplink and addresses.
func (c Config) network() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	eth0, err := netlink.LinkByName(uplink)
	if err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: attributes(nodeBridge)}
	bridge.HardwareAddr = mac(c.Number)
	if err := errors.Join(netlink.LinkSetUp(lo), netlink.LinkAdd(bridge)); err != nil {
		return err
	}
	if err := errors.Join(netlink.LinkSetMaster(eth0, bridge), netlink.LinkSetUp(eth0)); err != nil {
		return err
	}
	if err := configure(bridge, c.Address4, c.Address6); err != nil {
		return err
	}
	for _, gateway := range []net.IP{c.Gateway4.AsSlice(), c.Gateway6.AsSlice()} {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Gw: gateway}); err != nil {
			return fmt.Errorf("add the default route by %s: %w", gateway, err)
		}
	}
	return nil
}

// Start starts a daemon, which must not run, and returns its process ID.
func (p *Process1) Start(d Daemon, pid *int) (err error) {
	*pid, err = p.children.daemon(d, p.environment())
	return err
}

// Kill ends a daemon with SIGKILL and returns when it is gone.
func (p *Process1) Kill(name string, _ *struct{}) error { return p.children.kill(name) }

// Ended returns the daemons that ended by themselves, with how.
func (p *Process1) Ended(_ struct{}, names *[]string) error {
	*names = p.children.ended()
	return nil
}

// Run runs a command to its end.
func (p *Process1) Run(c Call, r *Result) (err error) {
	*r, err = p.children.run(p.config.Dir, c, append(p.environment(), c.Env...))
	return err
}

func (p *Process1) environment() []string {
	return append(os.Environ(), "PATH="+p.config.Bin+":"+os.Getenv("PATH"))
}
