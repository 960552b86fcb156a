package announce

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
)

// Plugin implements the CNI commands.
type Plugin struct {
	// Attachments has the IPAM plugin's files about attachments.
	Attachments attach.Dir
	// Stdout receives the result, and Stderr the lines for the runtime's log.
	Stdout, Stderr io.Writer
	// Places is the file by whose locks all calls on the node share the slots of repeating processes.
	Places string
	// Repeater is the command line of a process that calls Repeat.
	Repeater []string
	// Collect answers a GC for the IPAM plugin, with the runtime's configuration: the main plugins of the CNI project
	// do not pass GC on to the IPAM plugin.
	Collect func(ctx context.Context, config []byte) error
	// Contest reports to the allocator that other machines have addresses of the container, and returns an error that
	// names these machines.
	Contest func(ctx context.Context, args *skel.CmdArgs, addrs []netip.Addr) error
}

// Funcs returns the functions for the CNI commands.
func (p *Plugin) Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: p.add, Del: p.del, Check: p.check, GC: p.gc, Status: p.status}
}

// Versions returns the versions of the CNI specification that the plugin supports.
func Versions() version.PluginInfo { return version.VersionsStartingFrom("0.3.0") }

// Config is the plugin's element of a conflist.
type Config struct {
	types.PluginConf
	// MAC sets the MAC derived from the IPv4 address, so that a pod that keeps its address keeps its MAC.
	MAC bool `json:"mac"`
	// CheckGateway makes an ADD fail unless the gateways answer on the interface.
	CheckGateway bool `json:"checkGateway"`
}

// decode reads the configuration without the fields that an ADD adds.
func decode(text []byte) (*Config, error) {
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the configuration of bcsnet-announce cannot be read",
			err.Error())
	}
	return &c, nil
}

// invalid returns an error about the network's configuration, for an operator.
func invalid(format string, args ...any) error {
	return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf(format, args...), "")
}

// logf writes a line to the runtime's log.
func (p *Plugin) logf(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "bcsnet-announce: "+format+"\n", args...)
}
