package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/link"
	"github.com/bcsnet/bcsnet/pkg/cni/neighbour"
)

const (
	// budget bounds the questions for all addresses together: if nobody answers, a pod waits that long. The rest of 200
	// ms is for bringing the link up and down.
	budget = 180 * time.Millisecond
	// carrierBudget is the part of the budget that a link may take to get its carrier. The rest is for answers.
	carrierBudget = 100 * time.Millisecond
	// rounds is the number of questions for each address: a bridge may drop frames that come right after a port is up.
	rounds = 3
)

// ErrNoLink is the error of a probe without a usable link: no network namespace, no interface in it, a link without
// address resolution, or one without a carrier. No question was sent, so the address may be in use.
var ErrNoLink = errors.New("no link to probe on")

// Request has the addresses, and the interface that will get them.
type Request struct {
	// NetNS is the path of the container's network namespace, as in CNI_NETNS.
	NetNS  string
	IfName string
	Addrs  []netip.Addr
}

// Answer identifies a machine that has one of the addresses, or is about to take it.
type Answer struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// Probe asks for the owners of all addresses at once, for at most 200 ms, and returns the machines that answered,
// sorted. Answers from the interface's own MAC are ignored. A link that is down is brought up meanwhile, and down again
// afterwards.
func Probe(ctx context.Context, r Request) ([]Answer, error) {
	within, stop := context.WithTimeout(ctx, budget)
	defer stop()
	var claims []neighbour.Claim
	err := link.In(r.NetNS, r.IfName, func(l netlink.Link) error {
		if err := link.Neighbourly(l); err != nil {
			return err
		}
		return whileUp(l, func() (err error) {
			claims, err = ask(within, l, r.Addrs)
			return err
		})
	})
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe for %s on %s: %w", r.Addrs, r.IfName, ctx.Err())
	case noLink(err):
		return nil, fmt.Errorf("%w: %w", ErrNoLink, err)
	case err != nil:
		return nil, fmt.Errorf("probe for %s on %s: %w", r.Addrs, r.IfName, err)
	}
	answers := make([]Answer, 0, len(claims))
	for _, c := range claims {
		answers = append(answers, Answer{Addr: c.Addr, MAC: c.MAC})
	}
	slices.SortFunc(answers, func(a, b Answer) int {
		return cmp.Or(a.Addr.Compare(b.Addr), slices.Compare(a.MAC, b.MAC))
	})
	return answers, nil
}

// noLink reports whether an error says that the link is unusable or disappeared.
func noLink(err error) bool {
	return errors.Is(err, link.ErrNoNamespace) || errors.Is(err, link.ErrNoInterface) ||
		errors.Is(err, link.ErrNoNeighbours) || errors.Is(err, link.ErrNoCarrier) || errors.Is(err, unix.ENETDOWN)
}

// whileUp calls a function while a link is up. A link that was down is down again afterwards: main plugins set MAC,
// sysctls and addresses before they bring it up.
func whileUp(l netlink.Link, do func() error) (err error) {
	if l.Attrs().Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(l); err != nil {
			return fmt.Errorf("bring the link up: %w", err)
		}
		defer func() {
			if down := netlink.LinkSetDown(l); down != nil {
				err = errors.Join(err, fmt.Errorf("bring the link down: %w", down))
			}
		}()
	}
	return do()
}

// ask returns the claims to the addresses that arrive until the context ends.
func ask(ctx context.Context, l netlink.Link, addrs []netip.Addr) ([]neighbour.Claim, error) {
	messages := make([]neighbour.Message, 0, len(addrs))
	for _, addr := range addrs {
		m, err := neighbour.Probe(addr, l.Attrs().HardwareAddr)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	waiting, stop := context.WithTimeout(ctx, carrierBudget)
	defer stop()
	if err := link.AwaitCarrier(waiting, l.Attrs().Index); err != nil {
		return nil, err
	}
	conn, err := neighbour.Listen(link.Interface(l))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Ask(ctx, messages, addrs, pauses(ctx)...)
}

// pauses returns the pauses between the rounds. The time for answers is the same after the last round as between
// rounds.
func pauses(ctx context.Context) []time.Duration {
	deadline, _ := ctx.Deadline()
	pause := max(time.Until(deadline)/(2*(rounds-1)), time.Millisecond)
	return slices.Repeat([]time.Duration{pause}, rounds-1)
}
