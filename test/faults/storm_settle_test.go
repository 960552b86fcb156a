package faults_test

import (
	"slices"
	"time"
)

// awaitActive waits until the containers that have an address of a pool by the API server are those that were answered.
func (r *round) awaitActive(pool string, answered []*sandbox) {
	var want []string
	for _, b := range withAddress(answered) {
		want = append(want, b.id)
	}
	slices.Sort(want)
	for deadline := time.Now().Add(settled); !r.Failed(); pause(r.ctx, 100*time.Millisecond) {
		stored, err := r.stored(pool)
		switch {
		case err == nil && slices.Equal(stored, want):
			return
		case time.Now().After(deadline):
			r.Wrong("pool %s: %d leases are stored for %d containers that were answered (%v)", pool, len(stored), len(want),
				err)
		}
	}
}

// stored are the containers that have an address of a pool.
func (r *round) stored(pool string) (all []string, err error) {
	leases, err := r.site.active(r.ctx)
	for _, l := range leases {
		if l.Pool == pool {
			all = append(all, l.ContainerID)
		}
	}
	slices.Sort(all)
	return all, err
}
