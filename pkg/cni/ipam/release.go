package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// errAttachedAgain is the error of a release that came after a later ADD of the same interface.
var errAttachedAgain = errors.New("the interface was attached again meanwhile")

// release releases the addresses that the interface held at a time.
func (c *call) release(ctx context.Context, at time.Time) error {
	r := c.record()
	r.StartedAt = at
	return c.send(ctx, r, false)
}

// send requests a release; with once it does not retry after a refusal. If the clock was set back, the release may be
// older than its ADD by the node's clock. It then counts from its arrival, because this node knows of no later ADD.
func (c *call) send(ctx context.Context, r undelivered.Record, once bool) error {
	namespace, name, _ := strings.Cut(r.Pod, "/")
	request := wire.ReleaseRequest{
		Host: r.Host.String(), ContainerID: r.ContainerID, IfName: r.IfName, PodName: name, PodNamespace: namespace,
		PodUID: r.PodUID, StartedAt: r.StartedAt.Format(time.RFC3339Nano),
	}
	question := client.Call{
		Method: http.MethodDelete, Path: wire.Prefix, RequestID: c.line.RequestID, Body: request, Once: true,
		Accept: c.acceptRelease(r.ContainerID),
	}
	err := c.client.Do(ctx, question)
	refused, ok := errors.AsType[*client.Refusal](err)
	if !ok || !refused.Retry {
		return err
	}
	if refused.Reason == ipam.ReasonReleaseOutdated {
		if _, err := c.attachments().Read(r.ContainerID, r.IfName); err == nil {
			return fmt.Errorf("%w: %w", errAttachedAgain, refused)
		}
		request.StartedAt = ""
	} else if once {
		return err
	}
	question.Body, question.Once = request, once
	return c.client.Do(ctx, question)
}
