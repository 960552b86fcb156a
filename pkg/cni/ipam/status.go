package ipam

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// fullTime is the time for which STATUS fails after a refusal because pools are full, if statusFails has pools. After
// that, a pod may try again.
const fullTime = time.Minute

// status answers a STATUS: the plugin is ready if its configuration can be read and a replica has answered since boot.
// A failed STATUS makes the node NotReady and evicts its pods, so a later outage does not make it fail.
func (p *Plugin) status(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), statusTime)
	defer stop()
	c, err := p.begin("STATUS", args)
	if err == nil {
		err = c.status(ctx)
	}
	return c.end(err)
}

func (c *call) status(ctx context.Context) error {
	if err := c.settings.Complete(); err != nil {
		return unavailable(configError("the configuration", err))
	}
	access, err := c.access()
	if err != nil {
		return unavailable(err)
	}
	if access.TLS != nil && access.Token == "" {
		return cniError(types.ErrPluginNotAvailable, "hint: the installer's pod on this node writes it",
			"the token in %s is missing or empty", c.plugin.ConfigDir)
	}
	fails := func(word string) bool { return slices.Contains(c.conf.StatusFails, word) }
	if c.state.AnsweredAt.IsZero() || fails(netconf.StatusAllocator) {
		if err := c.client.Ping(ctx); err != nil {
			return unavailable(err)
		}
	}
	if full := c.state.PoolsFull; full != nil && fails(netconf.StatusPools) && c.began.Sub(full.At).Abs() < fullTime {
		return cniError(types.ErrPluginNotAvailable, "hint: statusFails of the network configuration has pools",
			"pools are full: %s", full.Message)
	}
	return nil
}

// unavailable returns an error with the CNI code for "no ADD is possible".
func unavailable(err error) error {
	out := *asCNI(err)
	out.Code = types.ErrPluginNotAvailable
	return errors.Join(&out, err)
}
