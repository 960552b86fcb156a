package ipam

import (
	"context"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// Contest is called by the chained plugin in an ADD if the duplicate address detection of Linux failed for addresses.
// It asks the network which machines have them and reports these to the allocator, which quarantines the addresses as
// after a probe, so that the next ADD gets others. It always returns an error. The container's other addresses stay its
// own until its DEL, because its interface already has them.
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
		return cniError(types.ErrTryAgainLater, "hint: an ending pod or a looped network has such addresses for a moment",
			"nobody answers for %v any more", addrs)
	}
	c.reportAll(ctx, found.answers, &found)
	return &found
}
