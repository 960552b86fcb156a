//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// judge asks the network, all the time, who has the addresses of the IPv4 pool. Two stations that answer for one, in two rounds
// one after the other, are a duplicate: in one round alone they may be an address that has just moved.
type judge struct {
	bed  *bed.Bed
	stop func()

	mu     sync.Mutex
	found  []error
	rounds int
}

func startJudge(b *bed.Bed) *judge {
	ctx, cancel := context.WithCancel(context.Background())
	j := &judge{bed: b}
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
	once, err := j.bed.WhoHas(ctx, poolAddresses()...)
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

// leaked returns an error while anybody has an address of the pools: a station that answers, or a lease. Nobody should, when no
// pod is there.
func (w *fixture) leaked(t *testing.T) error {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	leases := &v1.BCSNetIPList{}
	if err := w.Cluster.AdminFor(t).List(ctx, leases); err != nil {
		return err
	}
	var errs []error
	for i := range leases.Items {
		if l := &leases.Items[i]; l.Status.Status == v1.IPActive {
			errs = append(errs, fmt.Errorf("%s is held for %s/%s, container %s, on %s",
				l.Name, l.Status.PodNamespace, l.Status.PodName, l.Status.ContainerID, l.Status.Host))
		}
	}
	stations, err := w.WhoHas(ctx, poolAddresses()...)
	for addr, macs := range stations {
		errs = append(errs, fmt.Errorf("%s is answered for by %q", addr, macs))
	}
	return errors.Join(append(errs, err)...)
}

// wantNothingLeft waits until no address is in use, within the minute that is promised and what this machine takes.
func (w *fixture) wantNothingLeft(t *testing.T) {
	t.Helper()
	if err := controlplane.WaitFor(context.WithoutCancel(t.Context()), 90*time.Second, func() error { return w.leaked(t) }); err != nil {
		t.Errorf("leaked: %v", err)
	}
	if err := w.judge.verdict(); err != nil {
		t.Errorf("an address was in use twice: %v", err)
	}
}
