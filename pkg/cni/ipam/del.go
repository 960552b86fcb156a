package ipam

import (
	"context"
	"errors"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// del answers a DEL. It never fails, because the end of a pod must not depend on it. A release that no replica accepts
// is stored on disk for a later call. If the disk fails, the garbage collection frees the address.
func (p *Plugin) del(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), delTime)
	defer stop()
	c, err := p.begin("DEL", args)
	if err != nil { // use the valid part of the configuration
		c.note("%v", err)
	}
	c.del(ctx)
	return c.end(nil)
}

func (c *call) del(ctx context.Context) {
	if err := c.attachments().Remove(c.line.ContainerID, c.line.IfName); err != nil {
		c.note("%v", err)
	}
	failpoint.Kill("ipam-del-begun")
	err := c.settings.Complete()
	if err == nil {
		err = c.release(ctx, c.told)
	}
	failpoint.Kill("ipam-del-asked")
	refused, is := errors.AsType[*client.Refusal](err)
	switch {
	case err == nil:
		return
	case is && (!later(refused) || errors.Is(err, errAttachedAgain)): // a later try would have the same result
		c.line.Outcome = runstate.Refused
		c.note("%s (%s)", refused.Message, refused.Reason)
		return
	}
	c.note("not released now: %v", err)
	c.line.Outcome = runstate.Recorded
	if err := c.records().Put(c.record()); err != nil {
		c.line.Outcome = runstate.Lost
		c.note("%v", err)
	}
	failpoint.Kill("ipam-del-recorded")
}

// later reports whether a replica may accept a release later that it refused now: because the refusal is temporary,
// because the node will use https once its migration is done, or because a replica of this release needs no pod names.
func later(r *client.Refusal) bool {
	return r.Retry || r.Reason == ipam.ReasonPlainHTTP || r.Reason == ipam.ReasonMissingField
}

func (c *call) record() undelivered.Record {
	r := undelivered.Record{
		Cluster: c.settings.Cluster, Host: c.settings.Host, ContainerID: c.line.ContainerID, IfName: c.line.IfName,
		Pod: c.conf.Pod.String(), PodUID: c.conf.Pod.UID, StartedAt: c.told,
	}
	if c.settings.ByConflist {
		r.Replicas = texts(c.settings.Replicas)
	}
	return r
}
