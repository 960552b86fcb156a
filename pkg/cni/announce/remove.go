package announce

import (
	"context"

	"github.com/containernetworking/cni/pkg/skel"
)

// del answers a DEL: it removes the attachment's file. It never fails, because the end of a pod must not depend on it.
// The next boot empties the directory anyway.
func (p *Plugin) del(args *skel.CmdArgs) error {
	if err := p.Attachments.Remove(args.ContainerID, args.IfName); err != nil {
		p.logf("the file of %s, interface %s, stays: %v", args.ContainerID, args.IfName, err)
	}
	return nil
}

// gc answers a GC in place of the IPAM plugin.
func (p *Plugin) gc(args *skel.CmdArgs) error {
	if _, err := decode(args.StdinData); err != nil {
		return err
	}
	return p.Collect(context.Background(), args.StdinData)
}

// status answers a STATUS: the plugin needs only a configuration that it can read.
func (p *Plugin) status(args *skel.CmdArgs) error {
	_, err := decode(args.StdinData)
	return err
}
