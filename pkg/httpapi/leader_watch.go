package httpapi

import (
	"context"
	"net/http"
	"time"
)

// lives reports whether the leader has recently decided anything, or reports now that it can. Concurrent callers share
// one probe.
func (f *Forwarder) lives(leader Leader) bool {
	if at := f.sign.Load(); at != nil && time.Since(*at) < quietTime {
		return true
	}
	lives, _, _ := f.probes.Do(leader.URL, func() (any, error) { return f.ready(leader), nil })
	return lives.(bool)
}

// ready asks the leader whether it can decide anything.
func (f *Forwarder) ready(leader Leader) bool {
	ctx, cancel := context.WithTimeout(context.Background(), signTime)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, leader.URL+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	a, err := f.roundTrip(f.signs, out)
	return err == nil && a.status == http.StatusOK && a.header.Get(headerAnsweredBy) == leader.ID()
}

// avoid makes this replica answer requests until the leader is back or another one leads.
func (f *Forwarder) avoid(leader Leader) {
	f.silent.Store(new(leader.ID()))
	select {
	case f.trouble <- struct{}{}:
	default:
	}
}

// Run probes a silent leader until the context ends, so that no request has to try it.
func (f *Forwarder) Run(ctx context.Context) error {
	defer f.transport.CloseIdleConnections()
	defer f.signs.CloseIdleConnections()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.trouble:
		}
		for f.silent.Load() != nil {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			silent := f.silent.Load()
			if leader, why := f.target(); why != "" || leader.ID() != *silent || f.ready(leader) {
				f.silent.CompareAndSwap(silent, nil)
			}
		}
	}
}
