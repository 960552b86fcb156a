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

// beats reads the Leases that kubelets renew while they are in touch with the API server. It reads them only if there
// is a suspect on the host: a watch would deliver each renewal of each node.
type beats struct {
	live client.Reader
	log  *slog.Logger
}

// of returns the times at which nodes renewed their Leases, by their own clocks; empty for a node without one. A Lease
// that cannot be read is left out.
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

// touch is the contact, since a suspect was first seen, of a ready node that claims the suspect's host.
type touch struct {
	// beat is the renewal time at the last check; renewal is the evaluation of that.
	beat    string
	renewal gone.Renewal
	// missed is the time after the first check at which the node was last seen out of touch.
	missed time.Duration
}

// next returns the touch after another check of the Lease. read reports whether the Lease could be read.
func (t touch) next(beat string, read bool) touch {
	switch {
	case t.renewal == gone.Since, !read:
	case beat == "":
		t.beat, t.renewal = "", gone.NoLease
	case t.beat == "":
		t.beat, t.renewal = beat, gone.Before
	case beat != t.beat && t.renewal == gone.Once:
		t.renewal = gone.Since
	case beat != t.beat:
		t.beat, t.renewal = beat, gone.Once
	}
	return t
}

// inTouch reports whether the kubelet was in touch with the API server at this check.
func (t touch) inTouch() bool { return t.renewal == gone.Since || t.renewal == gone.NoLease }

// listen records which nodes have renewed their Leases since their suspects were first seen, and until when they had
// not.
func (c *Collector) listen(ctx context.Context, seen map[spot]suspect, now time.Time) {
	wanted := map[string]struct{}{}
	for _, s := range seen {
		for _, n := range c.Nodes.Of(s.lease) {
			if n.Ready && s.nodes[n.Name].renewal != gone.Since {
				wanted[n.Name] = struct{}{}
			}
		}
	}
	heard := c.beats.of(ctx, wanted)
	for at, s := range seen {
		nodes := map[string]touch{}
		for _, n := range c.Nodes.Of(s.lease) {
			t, known := s.nodes[n.Name]
			if beat, read := heard[n.Name]; n.Ready {
				t = t.next(beat, read)
			} else {
				t.beat, t.renewal = "", gone.Unread
			}
			if (!known || !t.inTouch()) && !failpoint.Broken("back") {
				t.missed = now.Sub(s.since)
			}
			nodes[n.Name] = t
		}
		s.nodes = nodes
		seen[at] = s
	}
}
