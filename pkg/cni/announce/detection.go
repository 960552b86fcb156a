package announce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// detectionWait bounds the time that an ADD waits for duplicate address detection. By default, Linux needs up to
	// 2 s for an address.
	detectionWait  = 5 * time.Second
	detectionEvery = 10 * time.Millisecond
)

// errTentative is the error for addresses whose duplicate address detection has not ended. Announcing them could take
// them from another machine.
var errTentative = errors.New("duplicate address detection has not ended")

// flagsOn returns the addresses of a link, each with its IFA_F_ flags.
func flagsOn(l netlink.Link) (map[netip.Addr]int, error) {
	on, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("read the addresses: %w", err)
	}
	flags := map[netip.Addr]int{}
	for i := range on {
		if addr, is := netip.AddrFromSlice(on[i].IP); is { //nolint:forbidigo // of netlink
			flags[addr.Unmap()] = on[i].Flags
		}
	}
	return flags, nil
}

// with returns the addresses of the result that have a flag on the link.
func (a *attached) with(flag int, flags map[netip.Addr]int) (list []netip.Addr) {
	for _, addr := range a.addrs() {
		if flags[addr]&flag != 0 {
			list = append(list, addr)
		}
	}
	return list
}

// awaitDetection waits until duplicate address detection has ended for all addresses of the result, in the network
// namespace of the caller's thread. It returns a duplicateError if another machine has addresses, and errTentative
// after detectionWait.
func (a *attached) awaitDetection(ctx context.Context, l netlink.Link) error {
	ctx, stop := context.WithTimeout(ctx, detectionWait)
	defer stop()
	ticker := time.NewTicker(detectionEvery)
	defer ticker.Stop()
	for {
		flags, err := flagsOn(l)
		if err != nil {
			return err
		}
		// Linux keeps a permanent address whose detection failed, with both flags.
		if failed := a.with(unix.IFA_F_DADFAILED, flags); len(failed) > 0 {
			return &duplicateError{failed}
		}
		tentative := a.with(unix.IFA_F_TENTATIVE, flags)
		if len(tentative) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", errTentative, tentative)
		case <-ticker.C:
		}
	}
}

// duplicateError says that another machine has addresses of the result.
type duplicateError struct{ addrs []netip.Addr }

func (e *duplicateError) Error() string { return fmt.Sprintf("another machine has %s", e.addrs) }

// contest reports addresses that another machine has. It returns the error of the ADD, with the machine's MAC if it
// still answers.
func (p *Plugin) contest(ctx context.Context, args *skel.CmdArgs, e *duplicateError) error {
	texts := make([]string, 0, len(e.addrs))
	for _, addr := range e.addrs {
		texts = append(texts, addr.String())
	}
	return types.NewError(types.ErrTryAgainLater,
		fmt.Sprintf("%s cannot be used on %s: duplicate address detection found another machine with it",
			strings.Join(texts, ", "), args.IfName), p.Contest(ctx, args, e.addrs).Error())
}
