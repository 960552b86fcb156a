package allocator

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// overtaken says whether this replica knows of a DEL that came after the request began.
func (a *Allocator) overtaken(r Request) bool {
	return a.tombstones.overtook(ipam.Holder{ContainerID: r.ContainerID, Owner: r.Owner, IfName: r.IfName}, r.Network, r.began)
}

func deleted(r Request) *ipam.Refusal {
	if r.ContainerID == "" {
		return ipam.Refuse(ipam.ReasonContainerDeleted, "owner %s gave up its addresses after this request began", r.Owner).
			WithHint("if it needs one again, ask with a startedAt after that")
	}
	return ipam.Refuse(ipam.ReasonContainerDeleted, "container %s was deleted after this request began", r.ContainerID)
}

// undo gives back what a request took although a DEL had overtaken it.
func (a *Allocator) undo(ctx context.Context, r Request, held []ipam.Lease) error {
	for _, l := range held {
		if _, err := a.releaseOne(ctx, l, func(now ipam.Lease) bool {
			return now.ContainerID == r.ContainerID && now.IfName == r.IfName && now.Owner == r.Owner && !now.StartedAt.After(r.StartedAt)
		}); err != nil {
			return err
		}
	}
	return deleted(r)
}

// renew has the leases that an owner held before say that they are for a request that began later. A DEL
// that came between the two may be known to another replica that does not know the lease yet: it would take it for
// one that the DEL overtook. A container is not asked for again after its DEL; an owner is. again says that
// somebody else was faster.
func (a *Allocator) renew(ctx context.Context, r Request, held []ipam.Lease) (again bool, err error) {
	if r.Owner == "" {
		return false, nil
	}
	for _, l := range held {
		next, later := ipam.Renew(l, r.StartedAt)
		if !later {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, unavailable(err)
		}
		_, err := a.leases.Write(ctx, next)
		switch {
		case errors.Is(err, store.ErrConflict):
			if err = a.leases.Refetch(ctx, l); errors.Is(err, store.ErrConflict) {
				return true, nil
			}
			return false, readFailed(err)
		case errors.Is(err, store.ErrUnknown):
			return false, unknown(l.Addr, err)
		case err != nil:
			return false, writeFailed(err)
		}
	}
	return false, nil
}
