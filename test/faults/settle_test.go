package faults_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// settle waits until pods and leases agree one to one, at most for a minute after the faults.
func (r *round) settle(calm time.Time) {
	want := r.ledger.all()
	r.await(calm.Add(settled), "after the faults", want)
	r.count(fmt.Sprintf("settled within %d s", int(time.Since(calm).Seconds())/10*10+10))
	for a := range want {
		live, err := r.site.read(r.ctx, a)
		if err == nil {
			r.ledger.seen(live)
		}
	}
}

// sweep ends all pods in order; nothing stays behind.
func (r *round) sweep() {
	for _, s := range r.slots {
		if s.uid != "" {
			s.endPod(true)
		}
	}
	r.background.Wait()
	if !r.failed() {
		r.await(time.Now().Add(settled), "after the last pod", nil)
	}
}

// await reads all leases until they are those that the pods should have.
func (r *round) await(deadline time.Time, when string, want map[netip.Addr]holding) {
	for {
		all, err := r.site.active(r.ctx)
		var wrong []string
		if err == nil {
			if wrong = differences(all, want); len(wrong) == 0 {
				return
			}
		}
		if time.Now().After(deadline) || !pause(r.ctx, 200*time.Millisecond) {
			r.wrong("%s pods and leases do not agree (%v):\n%s", when, err, strings.Join(wrong, "\n"))
			return
		}
	}
}

// differences between the leases and what the pods should have.
func differences(all []ipam.Lease, want map[netip.Addr]holding) (wrong []string) {
	found := map[netip.Addr]bool{}
	for _, l := range all {
		h, wanted := want[l.Addr]
		switch {
		case !wanted:
			wrong = append(wrong, fmt.Sprintf("%s is held by container %.8s of %s (pod %s, since %s): a leak", l.Addr, l.ContainerID, l.Who(), l.PodUID, l.Updated))
		case h.container != l.ContainerID:
			wrong = append(wrong, fmt.Sprintf("%s is held by container %.8s of %s, not by %.8s of %s", l.Addr, l.ContainerID, l.Who(), h.container, h.pod))
		}
		found[l.Addr] = true
	}
	for a, h := range want {
		if !found[a] {
			wrong = append(wrong, fmt.Sprintf("%s of container %.8s of %s is held by nobody", a, h.container, h.pod))
		}
	}
	slices.Sort(wrong)
	return wrong
}
