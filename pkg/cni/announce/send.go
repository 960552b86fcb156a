package announce

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"

	"github.com/bcsnet/bcsnet/pkg/cni/link"
	"github.com/bcsnet/bcsnet/pkg/cni/neighbour"
)

const (
	// gatewayWait bounds the test of the gateways.
	gatewayWait  = time.Second
	gatewayEvery = 100 * time.Millisecond
)

// send announces every address on a link, and starts the repetitions for the time after the answer.
func (p *Plugin) send(l netlink.Link, have *attached) error {
	sender, err := neighbour.OpenSender(link.Interface(l))
	if err != nil {
		return err
	}
	if err := announceOn(sender, have.addrs()); err != nil {
		return err
	}
	if err := p.repeatLater(sender, have.addrs()); err != nil {
		p.logf("%s is announced only once, because the announcement cannot be repeated: %v", have.addrs(), err)
	}
	return nil
}

// announceOn announces addresses on a link with the link's current MAC.
func announceOn(sender *neighbour.Sender, addrs []netip.Addr) error {
	mac, err := sender.MAC()
	if err != nil {
		return err
	}
	var messages []neighbour.Message
	for _, addr := range addrs {
		of, err := neighbour.Announcements(addr, mac)
		if err != nil {
			return err
		}
		messages = append(messages, of...)
	}
	return sender.Send(messages)
}

// askGateways returns an error that names the gateways that do not answer.
func askGateways(ctx context.Context, l netlink.Link, have *attached) error {
	conn, err := neighbour.Listen(link.Interface(l))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, stop := context.WithTimeout(ctx, gatewayWait)
	defer stop()
	var gateways []netip.Addr
	var questions []neighbour.Message
	for _, ip := range have.ips {
		if !ip.gateway.IsValid() || slices.Contains(gateways, ip.gateway) {
			continue
		}
		question, err := neighbour.Query(ip.gateway, ip.addr, l.Attrs().HardwareAddr)
		if err != nil {
			return err
		}
		gateways, questions = append(gateways, ip.gateway), append(questions, question)
	}
	every := slices.Repeat([]time.Duration{gatewayEvery}, int(gatewayWait/gatewayEvery))
	claims, err := conn.Ask(ctx, questions, gateways, every...)
	if err != nil {
		return fmt.Errorf("ask for the gateway: %w", err)
	}
	var silent []string
	for _, gateway := range gateways {
		if !slices.ContainsFunc(claims, func(c neighbour.Claim) bool { return c.Addr == gateway && !c.Tentative }) {
			silent = append(silent, gateway.String())
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return types.NewError(types.ErrTryAgainLater,
		fmt.Sprintf("nobody answers for the gateway %s over %s", strings.Join(silent, ", "), l.Attrs().Name),
		"see whether the interface is in the gateway's network (bridge port, VLAN) and the gateway is up")
}
