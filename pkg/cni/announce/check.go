package announce

import (
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/link"
)

// check answers a CHECK: the interface must still have the addresses and the MAC of the result. The result is the last
// plugin's; a plugin after this one may have set another MAC. The MTU is not checked, because a later plugin such as
// tuning may change it without showing that in the result.
func (p *Plugin) check(args *skel.CmdArgs) error {
	conf, err := decode(args.StdinData)
	if err != nil {
		return err
	}
	have, err := conf.attached(args.IfName)
	if err != nil {
		return err
	}
	// The result is enough to check the interface. The file has more, but is gone if somebody emptied the directory.
	x, err := p.Attachments.Read(args.ContainerID, args.IfName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return types.NewError(types.ErrIOFailure, "the allocator's answer cannot be read", err.Error())
	default:
		if err := have.goesWith(x); err != nil {
			return err
		}
	}
	err = link.In(args.Netns, args.IfName, func(l netlink.Link) error {
		return have.differs(l, x != nil && x.Migration)
	})
	if err != nil {
		return refusal(args.IfName, err)
	}
	return nil
}

// differs returns an error that names all differences between a link and the result. The detection of duplicates always
// fails for an address with which a virtual machine migrated to this pod.
func (a *attached) differs(l netlink.Link, migrated bool) error {
	has, err := flagsOn(l)
	if err != nil {
		return err
	}
	var found []error
	for _, addr := range a.addrs() {
		if _, ok := has[addr]; !ok {
			found = append(found, fmt.Errorf("the address %s is missing", addr))
		}
	}
	if !migrated {
		for _, addr := range a.with(unix.IFA_F_DADFAILED, has) {
			found = append(found, fmt.Errorf("another machine has %s, as duplicate address detection found", addr))
		}
	}
	mac, err := net.ParseMAC(a.iface.Mac)
	if a.iface.Mac != "" && (err != nil || mac.String() != l.Attrs().HardwareAddr.String()) {
		found = append(found, fmt.Errorf("the MAC is %s, not %s", l.Attrs().HardwareAddr, a.iface.Mac))
	}
	if err := errors.Join(found...); err != nil {
		return types.NewError(types.ErrInternal, l.Attrs().Name+" is not as it was set up", err.Error())
	}
	return nil
}
