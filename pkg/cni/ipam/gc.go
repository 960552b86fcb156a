package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// youngest is the age below which a GC does not touch files: an ADD may be in progress that the list does not contain.
const youngest = 10 * time.Minute

// gc answers a GC: it releases the leases of this network on this host that are not in the list and whose pods are
// gone.
func (p *Plugin) gc(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), gcTime)
	defer stop()
	return p.collect(ctx, args)
}

// Collect answers a GC for the chained plugin, with the runtime's configuration: main plugins of the CNI project do not
// pass GC on.
func (p *Plugin) Collect(ctx context.Context, config []byte) error {
	ctx, stop := context.WithTimeout(ctx, gcTime)
	defer stop()
	return p.collect(ctx, &skel.CmdArgs{StdinData: config})
}

func (p *Plugin) collect(ctx context.Context, args *skel.CmdArgs) error {
	c, err := p.begin("GC", args)
	if err == nil {
		err = c.gc(ctx)
	}
	return c.end(err)
}

func (c *call) gc(ctx context.Context) error {
	if c.conf.DisableGC {
		return nil
	}
	if c.conf.Valid == nil {
		return cniError(types.ErrInvalidNetworkConfig, "nothing is collected", "a GC without cni.dev/valid-attachments")
	}
	if len(c.conf.Valid) > wire.MaxAttachments {
		return cniError(types.ErrInvalidNetworkConfig, "nothing is collected",
			"a GC with %d attachments: at most %d are accepted", len(c.conf.Valid), wire.MaxAttachments)
	}
	if err := c.settings.Complete(); err != nil {
		return configError("the configuration", err)
	}
	request := wire.GCRequest{
		Host: c.settings.Host.String(), CNINetwork: c.conf.Name, StartedAt: c.startedAt(),
		Attachments: make([]wire.Attachment, 0, len(c.conf.Valid)),
	}
	for _, a := range c.conf.Valid {
		request.Attachments = append(request.Attachments, wire.Attachment{ContainerID: a.ContainerID, IfName: a.IfName})
	}
	var r wire.GCResult
	err := c.ask(ctx, http.MethodPost, "/gc", request, func(data json.RawMessage) error {
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		if r.CNINetwork != request.CNINetwork {
			return fmt.Errorf("it is about network %.80q", r.CNINetwork)
		}
		c.line.Addrs = r.IPs
		return nil
	})
	if refused, ok := errors.AsType[*client.Refusal](err); ok && refused.Reason == ipam.ReasonNotFound {
		// If releases are mixed, or after a downgrade, the files stay, because the leases stay, too.
		c.note("nothing was collected: the allocator is of a release that collects for no network: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	c.prune(request.Attachments, r.Kept)
	return nil
}

// prune removes the files of attachments of this network that neither the runtime's list nor the allocator has. Files
// of pods that another program attached stay. A replica of an earlier release does not list its attachments; then all
// files stay.
func (c *call) prune(listed, kept []wire.Attachment) {
	if kept == nil {
		return
	}
	stays := make(map[wire.Attachment]bool, len(listed)+len(kept))
	for _, a := range slices.Concat(listed, kept) {
		stays[a] = true
	}
	err := c.attachments().Prune(c.conf.Name, c.began.Add(-youngest), func(id, ifName string) bool {
		return stays[wire.Attachment{ContainerID: id, IfName: ifName}]
	})
	if err != nil {
		c.note("%v", err)
	}
}
