package ipam

import (
	"context"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// add answers an ADD.
func (p *Plugin) add(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), addTime)
	defer stop()
	c, err := p.begin("ADD", args)
	if err == nil {
		err = c.add(ctx)
	}
	return c.end(err)
}

func (c *call) add(ctx context.Context) error {
	if err := c.ready(); err != nil {
		return err
	}
	failpoint.Kill("ipam-add-begun")
	// An undelivered release of this interface must not free the address that the interface gets now.
	if err := c.records().Forget(ctx, c.line.ContainerID, c.line.IfName); err != nil {
		return ioError("an undelivered release of this container cannot be removed", err)
	}
	a, err := c.take(ctx)
	if err != nil {
		return err
	}
	c.line.Addrs = a.texts()
	if err := c.hand(a); err != nil {
		c.giveBack(ctx)
		return err
	}
	return nil
}

// ready returns an error unless the call has a pod, a host and an allocator.
func (c *call) ready() error {
	if !c.conf.Pod.Known() {
		return cniError(types.ErrInvalidEnvironmentVariables, "K8S_POD_NAMESPACE and K8S_POD_NAME are missing",
			"CNI_ARGS names no pod, and addresses are given to pods")
	}
	if err := c.settings.Complete(); err != nil {
		return configError("the configuration", err)
	}
	// Many of these fields select addresses. Addresses of any other pool would be of the wrong network.
	if err := c.conf.Followed(); err != nil {
		return configError("the network configuration", err)
	}
	return nil
}

// hand stores the attachment of the addresses and prints the result.
func (c *call) hand(a *allocation) error {
	x := &attach.Attachment{
		ContainerID: c.line.ContainerID, IfName: c.line.IfName, CNINetwork: c.cniNetwork(), MAC: a.mac(c.conf.Wish.MAC),
		Addrs: a.netips(), Pool: a.addrs[0].Pool, Migration: a.Migration, Pod: c.conf.Pod.String(),
		PodUID: c.conf.Pod.UID,
	}
	for _, addr := range a.addrs {
		x.MTU = smaller(x.MTU, addr.MTU)
		x.VLAN = max(x.VLAN, addr.VLAN)
	}
	if err := c.attachments().Write(x); err != nil {
		return ioError("the answer cannot be left for bcsnet-announce", err)
	}
	failpoint.Kill("ipam-add-attached")
	result, err := c.result(a).GetAsVersion(c.conf.CNIVersion)
	if err != nil {
		return cniError(types.ErrIncompatibleCNIVersion, err.Error(), "the result cannot be written in version %s",
			c.conf.CNIVersion)
	}
	if err := result.PrintTo(c.plugin.Stdout); err != nil {
		return ioError("the result cannot be written", err)
	}
	failpoint.Kill("ipam-add-answered")
	return nil
}

// giveBack releases the addresses of an ADD that fails for a reason of its own. The runtime sends a DEL as well.
func (c *call) giveBack(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), delTime) // even if the ADD's time is over
	defer stop()
	if err := c.release(ctx, c.told.Add(c.plugin.Now().Sub(c.began))); err != nil {
		c.note("the addresses %v could not be released: %v", c.line.Addrs, err)
	}
	if err := c.attachments().Remove(c.line.ContainerID, c.line.IfName); err != nil {
		c.note("%v", err)
	}
}

// mac returns the MAC for the interface: the requested one, or the one derived from an address.
func (a *allocation) mac(wish string) string {
	if wish != "" {
		return wish
	}
	for _, addr := range a.addrs {
		if addr.MacAddr != "" {
			return addr.MacAddr
		}
	}
	return ""
}

// smaller returns the smaller of two MTUs; 0 stands for no MTU.
func smaller(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// checkVLAN returns an error if the addresses' pool is in another VLAN than the one in which the main plugin puts the
// interface. If one of the two has no VLAN, the VLAN is configured elsewhere.
func (c *call) checkVLAN(a *allocation) error {
	vlan, where := c.conf.VLAN.ID, c.conf.VLAN.Field
	if vlan == 0 && c.conf.VLAN.Master != "" {
		id, err := c.plugin.LinkVLAN(c.conf.VLAN.Master)
		if err != nil {
			return cniError(types.ErrInvalidNetworkConfig, err.Error(), "the VLAN of master %s is not known",
				c.conf.VLAN.Master)
		}
		vlan, where = id, "master "+c.conf.VLAN.Master
	}
	for _, addr := range a.addrs {
		if vlan != 0 && addr.VLAN != 0 && vlan != addr.VLAN {
			return cniError(types.ErrInvalidNetworkConfig,
				"hint: make the two the same, or name another network in ipam.network",
				"%s is of pool %s in VLAN %d, and %s of network %s is in VLAN %d", addr.prefix.Addr(), addr.Pool,
				addr.VLAN, where, c.conf.Name, vlan)
		}
	}
	return nil
}
