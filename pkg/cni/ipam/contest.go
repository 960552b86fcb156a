package ipam

import (
	"context"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// Contest reports the machines that have addresses of a container to the allocator, for an ADD of the chained plugin
// whose addresses failed Linux's duplicate address detection. The allocator quarantines them as after a probe, so that
// the next ADD gets others. The container's other addresses stay its own until its DEL, because its interface already
// has them. Contest always returns an error.
func (p *Plugin) Contest(ctx context.Context, args *skel.CmdArgs, addrs []netip.Addr) error {
	ctx, stop := context.WithTimeout(ctx, addTime)
	defer stop()
	c, err := p.begin("ADD", args)
	if err == nil {
		err = c.contest(ctx, addrs)
	}
	return c.end(err)
}

func (c *call) contest(ctx context.Context, addrs []netip.Addr) error {
	if err := c.settings.Complete(); err != nil {
		return configError("the configuration", err)
	}
	for _, addr := range addrs {
		c.line.Addrs = append(c.line.Addrs, addr.String())
	}
	found := conflictError{answers: c.others(ctx, addrs)}
	if len(found.answers) == 0 {
		return cniError(types.ErrTryAgainLater,
			"hint: this was an ending pod, or the network sends frames back to their sender",
			"nobody answers for %v any more", addrs)
	}
	c.reportAll(ctx, found.answers, &found)
	return &found
}
