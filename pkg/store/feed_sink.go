package store

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// sink writes into the index.
type sink struct{ f *Feed }

var _ cache.ReflectorStore = sink{}

func (s sink) Add(o any) error { return s.Update(o) }

func (s sink) Update(o any) error {
	s.f.delivered()
	s.f.client.index.Feed.Watched(o.(*item).Lease)
	return nil
}

func (s sink) Delete(o any) error {
	s.f.delivered()
	s.f.client.index.Feed.WatchedDelete(o.(*item).Addr, o.(*item).Lease.Version)
	return nil
}

func (s sink) Replace(all []any, rv string) error {
	leases := make([]lease.Lease, 0, len(all))
	for _, o := range all {
		i, ok := o.(*item)
		if !ok {
			return fmt.Errorf("the list holds a %T", o)
		}
		leases = append(leases, i.Lease)
	}
	index, version := s.f.client.index, parseVersion(rv)
	restored := s.f.anew.Load() || s.f.consistent.Load() && version < index.Feed.Seen()
	if restored {
		index.Feed.ResetTo(leases, version)
	} else {
		restored = index.Feed.Replace(leases, version)
	}
	if restored {
		s.f.client.counts.answered.Store(0) // earlier writes may be lost
		s.f.restarted()
	}
	if s.f.synced.Store(true); s.f.told.Load() { // since the list began
		s.f.synced.Store(false)
	}
	s.f.hears()
	return nil
}

func (s sink) Resync() error { return nil }

// Bookmark records the progress of the watch while nothing changes.
func (s sink) Bookmark(rv string) error {
	s.f.delivered()
	s.f.client.index.Feed.Reached(parseVersion(rv))
	return nil
}
