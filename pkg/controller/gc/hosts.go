package gc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// beats reads the Leases that kubelets renew while they are in touch with the API server. They are read only when there
// is a suspect on the host: a watch would deliver each renewal of each node.
type beats struct {
	live client.Reader
	log  *slog.Logger
}

// of returns when nodes renewed their Leases, by their own clocks; empty for one that has none. A Lease that cannot be
// read is left out.
func (b *beats) of(ctx context.Context, nodes map[string]struct{}) map[string]string {
	var mu sync.Mutex
	out := make(map[string]string, len(nodes))
	var group errgroup.Group
	group.SetLimit(parallelCollections)
	for node := range nodes {
		group.Go(func() error {
			var l coordinationv1.Lease
			err := b.live.Get(ctx, types.NamespacedName{Namespace: corev1.NamespaceNodeLease, Name: node}, &l)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out[node] = ""
			if err == nil && l.Spec.RenewTime != nil {
				out[node] = l.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		b.log.Warn("addresses of pods that have gone wait: the Lease of a node cannot be read", "error", err,
			"hint", "check the controller's Role in namespace "+corev1.NamespaceNodeLease)
	}
	return out
}

// listen notes which hosts have renewed their Leases since their suspects were seen first, and until when they had not.
func (c *Collector) listen(ctx context.Context, seen map[spot]suspect, now time.Time) {
	wanted := map[string]struct{}{}
	for _, s := range seen {
		if node, ready := c.Nodes.ReadyNode(s.lease.Host); ready && (s.renewal != gone.Since || s.node != node) {
			wanted[node] = struct{}{}
		}
	}
	heard := c.beats.of(ctx, wanted)
	for at, s := range seen {
		node, _ := c.Nodes.ReadyNode(s.lease.Host)
		beat, ok := heard[node]
		switch {
		case s.node != node:
			s.node, s.beat, s.renewal = node, beat, before(beat, ok)
		case s.renewal == gone.Since, !ok:
		case s.renewal == gone.Unread, beat == "":
			s.beat, s.renewal = beat, before(beat, ok)
		case beat != s.beat && s.renewal == gone.Once:
			s.renewal = gone.Since
		case beat != s.beat:
			s.beat, s.renewal = beat, gone.Once
		}
		if touch := s.renewal == gone.Since || s.renewal == gone.NoLease; (node == "" || !touch) &&
			!failpoint.Broken("back") {
			s.missed = now.Sub(s.since)
		}
		seen[at] = s
	}
}

// before returns the renewal that the first look at a Lease amounts to.
func before(beat string, read bool) gone.Renewal {
	switch {
	case !read:
		return gone.Unread
	case beat == "":
		return gone.NoLease
	default:
		return gone.Before
	}
}
