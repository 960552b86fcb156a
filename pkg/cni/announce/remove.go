package announce

import (
	"context"

	"github.com/containernetworking/cni/pkg/skel"
)

// del answers a DEL: it forgets the attachment. It never fails, as nothing of a pod's end depends on it. The directory
// is emptied at the next boot.
func (p *Plugin) del(args *skel.CmdArgs) error {
	if err := p.Attachments.Remove(args.ContainerID, args.IfName); err != nil {
		p.logf("the file of %s, interface %s, stays: %v", args.ContainerID, args.IfName, err)
	}
	return nil
}

// gc answers a GC as the IPAM plugin would.
func (p *Plugin) gc(args *skel.CmdArgs) error {
	if _, err := decode(args.StdinData); err != nil {
		return err
	}
	return p.Collect(context.Background(), args.StdinData)
}

// status answers a STATUS: the plugin needs nothing but a configuration that it can read.
func (p *Plugin) status(args *skel.CmdArgs) error {
	_, err := decode(args.StdinData)
	return err
}
