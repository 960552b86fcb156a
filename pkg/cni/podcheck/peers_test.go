package podcheck

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// freePort returns a port at which nobody listens on the loopback addresses of these tests.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.77.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

// TestAskPeers asks pods that answer with their name, with another one, and not at all.
func TestAskPeers(t *testing.T) {
	port := freePort(t)
	at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 77, last}) }
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	for last, name := range map[byte]string{2: "right", 3: "wrong"} {
		serving.Go(func() {
			if err := Serve(ctx, netip.AddrPortFrom(at(last), port), name); err != nil {
				t.Error(err)
			}
		})
	}
	got := AskPeers(t.Context(), []nodecheck.Peer{
		{Name: "right", Addrs: []netip.Addr{at(2)}},
		{Name: "right", Addrs: []netip.Addr{at(2), at(3)}},
		{Name: "gone", Addrs: []netip.Addr{at(4)}},
	}, port)
	want := []nodecheck.Lost{
		{Peer: 1, Addr: 1, Why: `somebody else answers: "wrong"`}, {Peer: 2, Why: "connection refused"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAwaitPlan: a plan is read once it is there, however it comes, and not waited for longer than the context.
func TestAwaitPlan(t *testing.T) {
	want := nodecheck.Plan{Own: []nodecheck.Own{{Addr: netip.MustParseAddr("10.0.0.1")}}}
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if _, err := awaitPlan(over, file); err == nil {
		t.Error("an empty file is a plan")
	}
	plans := make(chan nodecheck.Plan, 1)
	go func() {
		plan, err := awaitPlan(t.Context(), file)
		if err != nil {
			t.Error(err)
		}
		plans <- plan
	}()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, <-plans, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing": nil, "no name": {"serve"}, "too many": {"serve", "a", "b"}, "no file": {"ask", "plan"}, "unknown": {"pause"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Run(t.Context(), args); err == nil {
				t.Error("it runs")
			}
		})
	}
}
