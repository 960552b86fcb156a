//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// judge asks the network, all the time, who has some addresses, those of the IPv4 pool. Two stations that answer for
// one, in two rounds one after the other, are a duplicate: in one round alone they may be an address that has just
// moved.
type judge struct {
	bed   *bed.Bed
	addrs []netip.Addr
	stop  func()

	mu     sync.Mutex
	found  []error
	rounds int
}

func startJudge(b *bed.Bed, addrs []netip.Addr) *judge {
	ctx, cancel := context.WithCancel(context.Background())
	j := &judge{bed: b, addrs: addrs}
	var running sync.WaitGroup
	running.Go(func() { j.run(ctx) })
	j.stop = func() {
		cancel()
		running.Wait()
	}
	return j
}

func (j *judge) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := j.round(ctx)
		if ctx.Err() == nil {
			j.mu.Lock()
			j.rounds++
			if err != nil {
				j.found = append(j.found, err)
			}
			j.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (j *judge) round(ctx context.Context) error {
	once, err := j.bed.WhoHas(ctx, j.addrs...)
	if err != nil {
		return err
	}
	var errs []error
	for addr, macs := range once {
		if len(macs) < 2 {
			continue
		}
		twice, err := j.bed.WhoHas(ctx, addr)
		still := slices.DeleteFunc(twice[addr], func(mac string) bool { return !slices.Contains(macs, mac) })
		if len(still) > 1 {
			err = errors.Join(err, fmt.Errorf("%s is answered for by %q", addr, still))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// verdict returns what was found since it was last asked, and an error where nobody looked.
func (j *judge) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	errs := j.found
	if j.found = nil; j.rounds == 0 {
		errs = append(errs, errors.New("nobody has asked who has the addresses"))
	}
	return errors.Join(errs...)
}

func poolAddresses() (addrs []netip.Addr) {
	for addr := range last - first + 1 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{192, 168, 77, byte(first + addr)}))
	}
	return addrs
}

// leaked returns an error while a lease is active for a pod of the namespace, of which there are none any more, or a
// station answers for an address without any active lease.
func (x *tenant) leaked(t *testing.T) error {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	stations, err := x.WhoHas(ctx, poolAddresses()...)
	if err != nil {
		return err
	}
	leases := &v1.BCSNetIPList{}
	if err := x.List(ctx, leases); err != nil {
		return err
	}
	var errs []error
	for i := range leases.Items {
		l := &leases.Items[i]
		if l.Status.Status != v1.IPActive {
			continue
		}
		if l.Status.PodNamespace == x.namespace {
			errs = append(errs, fmt.Errorf("%s is held for the pod %s, container %s, on %s",
				l.Name, l.Status.PodName, l.Status.ContainerID, l.Status.Host))
		}
		if addr, err := netip.ParseAddr(l.Name); err == nil { // those of IPv6 have other names
			delete(stations, addr)
		}
	}
	for addr, macs := range stations {
		errs = append(errs, fmt.Errorf("%s has no lease and is answered for by %q", addr, macs))
	}
	return errors.Join(errs...)
}

// wantNothingLeft waits until no address is leaked, within the minute that is promised and what this machine takes, and
// has the judge's verdict.
func (x *tenant) wantNothingLeft(t *testing.T) {
	t.Helper()
	if err := controlplane.WaitFor(context.WithoutCancel(t.Context()), 90*time.Second, func() error { return x.leaked(t) }); err != nil {
		t.Errorf("leaked: %v", err)
	}
	if err := x.judge.verdict(); err != nil {
		t.Errorf("an address was in use twice: %v", err)
	}
}

// TestTheJudgeFindsDuplicates gives an address, which is of no pool, to two nodes.
func TestTheJudgeFindsDuplicates(t *testing.T) {
	x := newTenant(t)
	const addr = "192.168.77.240"
	j := startJudge(x.Bed, []netip.Addr{netip.MustParseAddr(addr)})
	t.Cleanup(j.stop)
	for _, node := range []string{"n1", "n2"} {
		for verb, when := range map[string]func(func()){"add": func(do func()) { do() }, "del": t.Cleanup} {
			when(func() {
				if _, err := x.inNode(t, x.Node(node), bed.Call{Args: []string{"ip", "addr", verb, addr + "/24", "dev", "br0"}}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	controlplane.Eventually(t, func() error {
		if err := j.verdict(); err == nil || !strings.Contains(err.Error(), addr+" is answered for by") {
			return fmt.Errorf("the judge has not found the two: %w", err)
		}
		return nil
	})
}
