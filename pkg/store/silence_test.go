package store

import (
	"context"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// confirmed writes an address and returns when the feed has it, as an answer to a request waits for it.
func confirmed(t *testing.T, c *Client, l ipam.Lease) ipam.Lease {
	t.Helper()
	l = write(t, c, l)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.index.WaitSeen(ctx, l.Version); err != nil {
		t.Fatalf("the feed does not tell of version %d: %v", l.Version, err)
	}
	return l
}

// A watch that stands and says nothing is ended when it has not delivered what was written, and the next one goes on where it
// stopped, without a list.
func TestSilentWatchIsReplaced(t *testing.T) {
	t.Parallel()
	tap, gate, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	release := tap.On(watches, gate.HoldStream)
	c, f := feeding(t, tap)
	<-gate.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	release()
	confirmed(t, c, available(addr(1)))
	if s := f.Stats(); s.Lists != 1 || s.Watches != 2 || s.Silences != 1 {
		t.Errorf("%+v, want one list, and two watches of which one was silent", s)
	}
	controlplane.Until(t, "the watch counts as one that works", func() bool { return f.Silent() == 0 })
}

// Where every watch is silent, lists tell what was written; the row of silent watches is known, and ends when one works.
func TestAllWatchesAreSilent(t *testing.T) {
	t.Parallel()
	tap, gate, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	tap.On(watches, gate.HoldStream)
	c, f := feeding(t, tap)
	<-gate.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	l := confirmed(t, c, available(addr(1)))
	for f.Silent() < SilentWatches {
		l = confirmed(t, c, active(t, l, "c"))
		released, _ := ipam.Release(l, now(), ipam.Change{})
		l = confirmed(t, c, released)
	}
	if n := f.Stats().Lists; n < 2 {
		t.Errorf("%d lists, want more than the first", n)
	}
	gate.Open()
	l = confirmed(t, c, active(t, l, "d"))
	controlplane.Until(t, "a watch delivers", func() bool {
		if f.Silent() > 0 {
			released, _ := ipam.Release(l, now(), ipam.Change{})
			l = confirmed(t, c, active(t, confirmed(t, c, released), "d"))
		}
		return f.Silent() == 0
	})
}
