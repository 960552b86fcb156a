package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// warnLive warns which pods with addresses on a host still exist.
func (v *releaseVerb) warnLive(ctx context.Context, h netip.Addr, held []lease.Lease) {
	live, _, _, err := resource.LivePods(ctx, v.App, held)
	if err != nil && ctx.Err() == nil {
		v.Say.Warn("host %s: it is unknown whether its pods still exist: %v", h, err)
	}
	if len(live) > 0 {
		v.Say.Warn("host %s: %s on it still %s and %s the address: %s", h, humanize.Plural(len(live), "pod"),
			humanize.OneOr(len(live), "exists", "exist"), humanize.OneOr(len(live), "loses", "lose"),
			humanize.List(live))
	}
}

// refusals returns why hosts are refused without --force: a Ready node is on, and its pods use their addresses. A host
// that no Ready node claims is refused if its pods are bound to one: that node has another address now. A host that no
// node claims is refused if its pods cannot be read. Hosts without addresses, and those whose pods are gone or on nodes
// that are not Ready, are not refused.
func (r *releaseRun) refusals(ctx context.Context, held map[netip.Addr][]lease.Lease) map[netip.Addr]error {
	out := map[netip.Addr]error{}
	if r.force || !holdAny(held) {
		return out
	}
	nodes, err := resource.ListNodes(ctx, r.releaseVerb.App)
	table := resource.Table(nodes)
	for h, leases := range held {
		n, _ := table.Best(h)
		switch {
		case len(leases) == 0:
		case err != nil:
			out[h] = unknownHost(h, err)
		default:
			if err := r.readyNode(ctx, h, n, nodes, leases); err != nil {
				out[h] = err
			}
		}
	}
	return out
}

func holdAny(held map[netip.Addr][]lease.Lease) bool {
	for _, leases := range held {
		if len(leases) > 0 {
			return true
		}
	}
	return false
}

// unknownHost refuses a host if its node, or the pods that would name it, could not be read: the machine may be on.
func unknownHost(h netip.Addr, err error) error {
	return (&app.Failure{
		Reason: app.ReasonNodeUnknown, Message: fmt.Sprintf("host %s: whether it is a Ready node is unknown: %v", h,
			err),
		Cause: err,
	}).
		WithHint("if the machine is off: bcsnetctl release-host %s --force", h)
}

// readyNode refuses a host that is a Ready node, or whose pods are on one, and counts the pods that would lose their
// addresses. n is the node that claims the host. It returns nil for other hosts.
func (r *releaseRun) readyNode(
	ctx context.Context, h netip.Addr, n hosts.Node, nodes []resource.Node, held []lease.Lease,
) error {
	pods, running, bound, unread := resource.LivePods(ctx, r.releaseVerb.App, held)
	what := "is"
	if !n.Ready {
		i := slices.IndexFunc(nodes, func(o resource.Node) bool { return o.Ready && slices.Contains(bound, o.Name) })
		switch {
		case i < 0 && unread != nil && n.Name == "":
			return unknownHost(h, unread)
		case i < 0:
			return nil
		}
		what, n = "was an address of", nodes[i].Node
	}
	text := fmt.Sprintf("host %s %s the node %s, which is Ready: %s in use there", h, what, n.Name,
		humanize.Plural(len(held), "address"))
	if len(pods) > 0 {
		text += fmt.Sprintf(", and %s still %s (%d Running): %s",
			humanize.Plural(len(pods), "pod"), humanize.OneOr(len(pods), "exists", "exist"), running,
			humanize.List(pods))
	}
	if unread != nil {
		text += fmt.Sprintf("; whether its pods run is unknown: %v", unread)
	}
	return app.Refuse(app.ReasonNodeReady, "%s", text).
		WithHint(
			"its pods give them back as they end: kubectl drain %s --ignore-daemonsets; if the machine is off all "+
				"the same: bcsnetctl release-host %s --force", n.Name, h)
}

// isRefused reports whether an error comes from refusals.
func isRefused(err error) bool {
	f, ok := errors.AsType[*app.Failure](err)
	return ok && (f.Reason == app.ReasonNodeReady || f.Reason == app.ReasonNodeUnknown)
}
