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

// How long commands take at most. CNI gives no deadline; runtimes give up after two to four minutes.
const (
	addTime    = 30 * time.Second
	delTime    = 5 * time.Second
	checkTime  = 5 * time.Second
	gcTime     = 30 * time.Second
	statusTime = time.Second
)

// Plugin answers the commands of CNI.
type Plugin struct {
	// ConfigDir has config.json, ca.crt and token.
	ConfigDir string
	// Stdout gets results, and Stderr what the runtime's log shows.
	Stdout, Stderr io.Writer
	// Now returns the time of this node, and Up the time since its boot. By both the allocator orders its calls.
	Now func() time.Time
	Up  func() (time.Duration, error)
	// NewID returns the name of a request.
	NewID func() string
	// Probe returns who has an address already.
	Probe func(context.Context, probe.Request) ([]probe.Answer, error)
	// LinkVLAN returns the VLAN of a link of this node; 0 for one that is no VLAN link.
	LinkVLAN func(name string) (int, error)
}

// New returns the plugin as it runs on a node.
func New(stdout, stderr io.Writer) *Plugin {
	return &Plugin{
		ConfigDir: cmp.Or(os.Getenv(netconf.ConfigDirVariable), netconf.DefaultConfigDir), Stdout: stdout,
		Stderr: stderr, Now: time.Now, Up: runstate.Up, NewID: uuid.NewString,
		Probe: probe.Probe, LinkVLAN: linkVLAN,
	}
}

// Funcs returns the commands.
func (p *Plugin) Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: p.add, Del: p.del, Check: p.check, GC: p.gc, Status: p.status}
}

// Versions returns the versions of the CNI specification that the plugin answers in: all, as those of other IPAM
// plugins. A network configuration without one is of 0.1.0.
func Versions() version.PluginInfo { return version.All }

// Attachments returns the directory that ADDs leave what they were answered in.
func (p *Plugin) Attachments() (attach.Dir, error) {
	c := &call{plugin: p}
	_, settings, err := c.read()
	return attach.In(settings.RunDir), err
}
