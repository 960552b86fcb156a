package allocator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// changed is told of every change of the index.
func (a *Allocator) changed(_, l ipam.Lease) {
	if l.Version != 0 {
		for addr := range a.index.Doubts("") {
			if addr == l.Addr { // whoever changed it: the write in doubt has lost or won
				a.index.Drop(addr)
			}
		}
	}
	if l.State != ipam.Active || l.ContainerID == "" || !a.marks.deleted(l.ContainerID, l.IfName, l.StartedAt) {
		return
	}
	select {
	case a.orphan <- l:
	default: // Run is behind; collection finds it
	}
}

// settleEvery is how often Run looks after what is left over.
const settleEvery = 2 * time.Second

// Run releases addresses whose container was deleted before its ADD was seen, and settles writes whose
// outcome nobody asked for again. It returns when the context ends.
func (a *Allocator) Run(ctx context.Context) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	var failed []ipam.Lease // released another time; as many as containers that are deleted while the API server is away
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-a.orphan:
			if err := a.releaseOrphan(ctx, l); err != nil {
				failed = append(failed, l)
			}
		case <-tick.C:
			a.forgetDoubts(ctx)
			failed = slices.DeleteFunc(failed, func(l ipam.Lease) bool { return a.releaseOrphan(ctx, l) == nil })
		}
	}
}

func (a *Allocator) releaseOrphan(ctx context.Context, l ipam.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, MaxRequestTime)
	defer cancel()
	released, err := a.releaseOne(ctx, l, func(now ipam.Lease) bool {
		return now.State == ipam.Active && now.ContainerID == l.ContainerID && now.IfName == l.IfName && now.StartedAt.Equal(l.StartedAt)
	})
	switch {
	case err != nil:
		a.log.Warn("could not release the address of a deleted container", "address", l.Addr.String(), "container", l.ContainerID, "error", err)
	case released:
		a.log.Info("released an address whose container had been deleted", "address", l.Addr.String(), "container", l.ContainerID)
	}
	return err
}

// forgetDoubts ends doubts that are so old that the write cannot arrive any more.
func (a *Allocator) forgetDoubts(ctx context.Context) {
	for addr, hold := range a.index.Doubts("") {
		if a.leases.Now().Sub(hold.Since) < doubtLife {
			continue
		}
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			continue
		default:
			a.index.Wrote(live)
		}
		a.index.Drop(addr)
	}
}
