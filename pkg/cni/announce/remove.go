package announce

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

const (
	// gcWait bounds a GC.
	gcWait = 30 * time.Second
	// youngest is the age below which a GC leaves files alone: an ADD may be under way that its list does not know.
	youngest = 10 * time.Minute
)

// del answers a DEL: it forgets the attachment. It never fails, as nothing of a pod's end depends on it. The directory
// is emptied at the next boot.
func (p *Plugin) del(args *skel.CmdArgs) error {
	if err := p.Attachments.Remove(args.ContainerID, args.IfName); err != nil {
		p.logf("the file of %s, interface %s, stays: %v", args.ContainerID, args.IfName, err)
	}
	return nil
}

// gc answers a GC: it forgets the network's attachments that are valid no more, and has the IPAM plugin's leases
// collected.
func (p *Plugin) gc(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), gcWait)
	defer stop()
	conf, err := decode(args.StdinData)
	if err != nil {
		return err
	}
	valid, err := validAttachments(args.StdinData)
	if err != nil {
		return err
	}
	err = p.Attachments.Prune(conf.Name, p.Now().Add(-youngest), func(id, ifName string) bool {
		return valid[types.GCAttachment{ContainerID: id, IfName: ifName}]
	})
	if p.Collect != nil {
		err = errors.Join(err, p.Collect(ctx, args.StdinData))
	}
	return err
}

// validAttachments returns the attachments of a GC that are valid. There are two names for the list, as a draft of the
// specification had another one. A list that is null is empty: libcni writes it so. One that is not there is an error.
func validAttachments(text []byte) (map[types.GCAttachment]bool, error) {
	var lists struct {
		Attachments json.RawMessage `json:"cni.dev/valid-attachments"`
		Draft       json.RawMessage `json:"cni.dev/attachments"`
	}
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the attachments of a GC cannot be read", err.Error())
	}
	list := lists.Attachments
	if list == nil {
		list = lists.Draft
	}
	if list == nil {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, "a GC without cni.dev/valid-attachments",
			"nothing is collected")
	}
	var attachments []types.GCAttachment
	if err := json.Unmarshal(list, &attachments); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "the attachments of a GC cannot be read", err.Error())
	}
	valid := map[types.GCAttachment]bool{}
	for _, a := range attachments {
		valid[a] = true
	}
	return valid, nil
}

// status answers a STATUS: the plugin needs nothing but a configuration that it can read.
func (p *Plugin) status(args *skel.CmdArgs) error {
	_, err := decode(args.StdinData)
	return err
}
