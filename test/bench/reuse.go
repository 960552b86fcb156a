package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// reuses has a station that knows a pod, and is silent since that one went, ask the next pod of the address.
func (m *podMeter) reuses(ctx context.Context, turns int) (map[string][]time.Duration, error) {
	times := map[string][]time.Duration{}
	for i := range turns {
		for _, network := range []string{reused, silent} {
			say("an address that is used again, %s: turn %d of %d", network, i+1, turns)
			took, err := m.reuse(ctx, network, i)
			if err != nil {
				return nil, err
			}
			times[network] = append(times[network], took)
		}
	}
	return times, nil
}

func (m *podMeter) reuse(ctx context.Context, network string, turn int) (time.Duration, error) {
	first, next := turnPod(network, turn)+"-a", turnPod(network, turn)+"-b"
	if _, err := m.start(ctx, first, "n1", network); err != nil {
		return 0, err
	}
	if _, err := m.reached(ctx, first); err != nil {
		return 0, err
	}
	if err := m.end(ctx, first); err != nil {
		return 0, err
	}
	if _, err := m.start(ctx, next, "n2", network); err != nil {
		return 0, err
	}
	took, err := m.reached(ctx, next)
	if err != nil {
		return 0, err
	}
	return took, m.end(ctx, next)
}

// reached returns how long it takes until a pod answers at the address, to the fabric.
func (m *podMeter) reached(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	err := controlplane.WaitFor(ctx, podPatience, func() error {
		ctx, stop := context.WithTimeout(ctx, knock)
		defer stop()
		answer, err := m.Get(ctx, netip.MustParseAddr(reusedAddr), "/")
		if err == nil && !strings.HasPrefix(answer, name+" at ") {
			err = fmt.Errorf("it was %q that answered", answer)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("the pod %s is not reached: %w", name, err)
	}
	return time.Since(began), nil
}
