package announce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/link"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// carrierWait bounds the time that an ADD waits for a link without a carrier: some adapters negotiate for a second.
const carrierWait = 3 * time.Second

// add answers an ADD: it sets up the interface, announces its addresses and prints the result.
func (p *Plugin) add(args *skel.CmdArgs) error {
	conf, err := decode(args.StdinData)
	if err != nil {
		return err
	}
	have, err := conf.attached(args.IfName)
	if err != nil {
		return err
	}
	x, err := p.attachment(args)
	if err != nil {
		return err
	}
	if err := have.goesWith(x); err != nil {
		return err
	}
	err = link.In(args.Netns, args.IfName, func(l netlink.Link) error {
		l, err := conf.setUp(l, x, have)
		if err != nil {
			return err
		}
		failpoint.Kill("announce-add-set-up")
		have.iface.Mac, have.iface.Mtu = l.Attrs().HardwareAddr.String(), l.Attrs().MTU
		if x.Migration {
			p.logf("%s migrates: %s is not announced, because the other pod still uses it", args.ContainerID, x.Addrs)
			return nil
		}
		return p.announce(context.Background(), conf, l, have)
	})
	if d, is := errors.AsType[*duplicateError](err); is {
		return p.contest(context.Background(), args, d)
	}
	if err != nil {
		return refusal(args.IfName, err)
	}
	result, err := have.result.GetAsVersion(conf.CNIVersion)
	if err != nil {
		return invalid("bcsnet-announce cannot answer as version %s: %v", conf.CNIVersion, err)
	}
	return result.PrintTo(p.Stdout)
}

// attachment returns the IPAM plugin's file about the attachment. Without that file, the address must not be announced.
func (p *Plugin) attachment(args *skel.CmdArgs) (*attach.Attachment, error) {
	x, err := p.Attachments.Read(args.ContainerID, args.IfName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, invalid("the allocator's answer for %s of container %s is not in %s: bcsnet-announce goes after a "+
			"plugin whose ipam is bcsnet-ipam", args.IfName, args.ContainerID, p.Attachments.Dir)
	case err != nil:
		return nil, types.NewError(types.ErrIOFailure, "the allocator's answer cannot be read", err.Error())
	}
	return x, nil
}

// refusal returns an error with the matching CNI code.
func refusal(ifName string, err error) error {
	var coded *types.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, link.ErrNoNamespace), errors.Is(err, link.ErrNoInterface):
		return types.NewError(types.ErrInvalidNetNS, fmt.Sprintf("%s cannot be set up", ifName), err.Error())
	default:
		return types.NewError(types.ErrInternal, fmt.Sprintf("%s cannot be set up", ifName), err.Error())
	}
}

// announce sends the announcements and, if the configuration asks for it, tests the gateways. If another machine has an
// address, it sends nothing and returns an error: an announcement would take the address from that machine.
func (p *Plugin) announce(ctx context.Context, conf *Config, l netlink.Link, have *attached) error {
	err := link.Neighbourly(l)
	if err == nil {
		waiting, stop := context.WithTimeout(ctx, carrierWait)
		defer stop()
		err = link.AwaitCarrier(waiting, l.Attrs().Index)
	}
	if err == nil {
		err = have.awaitDetection(ctx, l)
	}
	unheard := errors.Is(err, link.ErrNoNeighbours) || errors.Is(err, link.ErrNoCarrier) ||
		errors.Is(err, errTentative)
	switch {
	case unheard && conf.CheckGateway:
		return types.NewError(types.ErrTryAgainLater, "the gateway cannot be asked", err.Error())
	case unheard:
		p.logf("%s is not announced: %v", have.addrs(), err)
		return nil
	case err != nil:
		return err
	}
	if err := p.send(l, have); err != nil {
		return fmt.Errorf("announce %s: %w", have.addrs(), err)
	}
	failpoint.Kill("announce-add-sent")
	if conf.CheckGateway {
		return askGateways(ctx, l, have)
	}
	return nil
}
