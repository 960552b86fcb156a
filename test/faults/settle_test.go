package faults_test

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/judge"
)

// settle waits until pods and leases agree one to one, at most for a minute after the faults.
func (r *round) settle(calm time.Time) {
	for _, s := range r.slots { // a restore that ended after the load has left some
		s.mu.Lock()
		s.endOrphan()
		s.mu.Unlock()
	}
	want := r.ledger.All()
	if braked(tenantPods(r.site.slots)) {
		r.confirm(r.ctx)
	}
	r.await(calm.Add(settled), "after the faults", want)
	r.Count(fmt.Sprintf("settled within %d s", int(time.Since(calm).Seconds())/10*10+10))
	for a := range want {
		live, err := r.site.read(r.ctx, a)
		if err == nil {
			r.ledger.Seen(live)
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
	if !r.Failed() {
		r.await(time.Now().Add(settled), "after the last pod", nil)
	}
	if !r.Failed() {
		r.awaitUnclaimed(time.Now().Add(settled))
	}
}

// await reads all leases until they are those that the pods should have.
func (r *round) await(deadline time.Time, when string, want map[netip.Addr]judge.Holding) {
	for {
		all, err := r.site.active(r.ctx)
		var wrong []string
		if err == nil {
			if wrong = judge.Differences(all, want); len(wrong) == 0 {
				return
			}
		}
		if time.Now().After(deadline) || !pause(r.ctx, 200*time.Millisecond) {
			r.Wrong("%s pods and leases do not agree (%v):\n%s\nthe pods of these leases, and what they hold:\n%s", when, err,
				strings.Join(wrong, "\n"), strings.Join(r.around(all, want), "\n"))
			return
		}
	}
}

// around tells of the pods whose leases are too many: what is there under their names.
func (r *round) around(all []lease.Lease, want map[netip.Addr]judge.Holding) (lines []string) {
	for _, leak := range all {
		if _, wanted := want[leak.Addr]; wanted {
			continue
		}
		p := &corev1.Pod{}
		err := r.site.admin.Get(r.ctx, types.NamespacedName{Namespace: leak.Namespace, Name: leak.PodName}, p)
		lines = append(lines, fmt.Sprintf("%s: pod %s, created %s, with %v (%v)", leak.Who(), p.UID, p.CreationTimestamp,
			p.Status.PodIPs, err))
		for _, l := range all {
			if l.Who() == leak.Who() {
				lines = append(lines, fmt.Sprintf("  %s: container %.8s on %s, pod %s, started %s, written %s", l.Addr,
					l.ContainerID, l.Host, l.PodUID, l.StartedAt, l.Updated))
			}
		}
	}
	return lines
}
