package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

const (
	// deliverTime and deliverMost bound the deliveries of earlier releases in one call, because its runtime waits.
	deliverTime = 500 * time.Millisecond
	deliverMost = 16
)

// deliver delivers some of the undelivered releases.
func (c *call) deliver(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, deliverTime)
	defer stop()
	if _, _, err := c.drain(ctx, deliverMost); err != nil {
		c.note("undelivered releases stay: %s", oneLine(err))
	}
}

// drain delivers undelivered releases, logs a line about each, and counts them.
func (c *call) drain(ctx context.Context, most int) (delivered, dropped int, err error) {
	all, err := c.records().Drain(ctx, c.settings.Cluster, most, c.deliverOne)
	for _, d := range all {
		line := runstate.Call{
			At: c.plugin.Now(), Command: "DEL", RequestID: c.line.RequestID, ContainerID: d.Record.ContainerID,
			IfName: d.Record.IfName, Pod: d.Record.Pod, Outcome: runstate.Delivered,
		}
		delivered++
		if d.Err != nil {
			delivered--
			dropped++
			line.Outcome, line.Error = runstate.Dropped, d.File+": "+d.Err.Error()
		}
		c.log(line)
	}
	return delivered, dropped, err
}

// deliverOne sends one release with the time at which its DEL began.
func (c *call) deliverOne(ctx context.Context, r undelivered.Record) error {
	if !r.Host.IsValid() {
		r.Host = c.settings.Host
	}
	switch {
	case !r.Host.IsValid():
		return fmt.Errorf("%w: no host is known", undelivered.ErrLater)
	case c.settings.ByConflist && !slices.Equal(r.Replicas, texts(c.settings.Replicas)):
		return fmt.Errorf("%w: it is for others than the network configuration names", undelivered.ErrLater)
	}
	err := c.send(ctx, r, true)
	var refused *client.Refusal
	switch {
	case errors.Is(err, errAttachedAgain):
		return fmt.Errorf("%w: %w", undelivered.ErrRefused, err)
	case !errors.As(err, &refused):
		return err
	case later(refused):
		return fmt.Errorf("%w: %w", undelivered.ErrLater, err)
	}
	return fmt.Errorf("%w: %w", undelivered.ErrRefused, err)
}

// texts returns URLs in text form.
func texts(urls []*url.URL) (all []string) {
	for _, u := range urls {
		all = append(all, u.String())
	}
	return all
}
