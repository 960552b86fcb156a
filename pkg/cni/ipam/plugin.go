package ipam

import (
	"cmp"
	"context"
	"io"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/probe"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
)

// Time limits of the commands. CNI gives no deadline; runtimes give up after two to four minutes.
const (
	addTime    = 30 * time.Second
	delTime    = 5 * time.Second
	checkTime  = 5 * time.Second
	gcTime     = 30 * time.Second
	statusTime = time.Second
)

// Plugin implements the CNI commands.
type Plugin struct {
	// ConfigDir is the directory of config.json, ca.crt and token.
	ConfigDir string
	// Stdout receives results, and Stderr the lines for the runtime's log.
	Stdout, Stderr io.Writer
	// Now returns the time of this node, and Up the time since its boot. The allocator orders the node's calls by both.
	Now func() time.Time
	Up  func() (time.Duration, error)
	// NewID returns a new request ID.
	NewID func() string
	// Probe returns the machines that already have an address of the request.
	Probe func(context.Context, probe.Request) ([]probe.Answer, error)
	// LinkVLAN returns the VLAN of a link of this node; 0 if it is not a VLAN link.
	LinkVLAN func(name string) (int, error)
}

// New returns the plugin with the defaults of a node.
func New(stdout, stderr io.Writer) *Plugin {
	return &Plugin{
		ConfigDir: cmp.Or(os.Getenv(netconf.ConfigDirVariable), netconf.DefaultConfigDir), Stdout: stdout,
		Stderr: stderr, Now: time.Now, Up: runstate.Up, NewID: uuid.NewString,
		Probe: probe.Probe, LinkVLAN: linkVLAN,
	}
}

// Funcs returns the functions for the CNI commands.
func (p *Plugin) Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: p.add, Del: p.del, Check: p.check, GC: p.gc, Status: p.status}
}

// Versions returns the versions of the CNI specification that the plugin supports: all, like other IPAM plugins. A
// network configuration without a version counts as 0.1.0.
func Versions() version.PluginInfo { return version.All }

// Attachments returns the directory in which ADDs store the allocator's answers.
func (p *Plugin) Attachments() (attach.Dir, error) {
	c := &call{plugin: p}
	_, settings, err := c.read()
	return attach.In(settings.RunDir), err
}
