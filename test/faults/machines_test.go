package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/judge"
)

const (
	// machines is the namespace of virtual machines whose addresses IPAMClaims keep, their pool, and its network.
	machines         = "machines"
	machineInterface = "pod16367aacb67"
	eventStarted     = "event machine started again with the address of its IPAMClaim"
	eventSecondPod   = "event second pod of an IPAMClaim refused"
	eventUnclaimed   = "event IPAMClaim deleted"
	eventReclaimed   = "event IPAMClaim deleted while its pod runs"
)

// runMachines has IPAMClaims come and go: a machine starts, stops and starts again on other hosts, with the same
// address while its IPAMClaim is there.
func (r *round) runMachines(rng *rand.Rand) {
	for n := 0; (n == 0 || r.between(rng, r.length/10)) && r.leaky(); n++ {
		if !r.steady.TryRLock() {
			continue // the store is being put back
		}
		name := fmt.Sprintf("vm-%d.%s", n, machines)
		r.spared.RLock()
		r.journaled("IPAMClaim made and deleted", name, func() { r.machine(name, rng) })
		r.spared.RUnlock()
		r.steady.RUnlock()
	}
}

// machine is the life of one: two to four pods, one after the other.
func (r *round) machine(name string, rng *rand.Rand) {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"network": machines, "interface": machineInterface},
	}}
	claim.SetGroupVersionKind(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1alpha1", Kind: "IPAMClaim"})
	claim.SetNamespace(machines)
	claim.SetName(name)
	unclaim := func() {
		until(r.ctx, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.site.admin.Delete(ctx, claim.DeepCopy()))
		})
		r.Count(eventUnclaimed)
	}
	if !until(r.ctx, func(ctx context.Context) error { return r.site.create(ctx, claim.DeepCopy()) }) {
		return
	}
	var kept netip.Addr
	for n, pods := 0, 2+rng.IntN(3); n < pods && r.loading(); n++ {
		b := r.launch(name, n, rng)
		if b == nil {
			break
		}
		if kept.IsValid() && b.addr != kept {
			r.Wrong("machine %s has %s, and not %s, which its IPAMClaim keeps", name, b.addr, kept)
		} else if kept.IsValid() {
			r.Count(eventStarted)
		}
		kept = b.addr
		r.again(r.ctx, b, rng)
		r.refuseSecond(name, n, b, rng)
		r.while(rng, 0, 2*time.Second)
		if n == pods-1 && rng.IntN(2) == 0 {
			unclaim() // the pod keeps its address
			r.Count(eventReclaimed)
			r.again(r.ctx, b, rng)
		}
		r.last(b)
		from := r.history.Now()
		if rng.IntN(2) == 0 {
			r.DEL(b, rng, from)
			r.removePod(machines, b.pod, b.uid)
		} else {
			r.removePod(machines, b.pod, b.uid)
			r.DEL(b, rng, from)
		}
	}
	unclaim()
}

// launch makes a pod of a machine and has it ask until it is served: the pod before it may have the address still. It
// is nil if the load ends before.
func (r *round) launch(name string, n int, rng *rand.Rand) *sandbox {
	h := r.site.place(rng.IntN(hosts))
	pod := fmt.Sprintf("virt-launcher-%s-%d-%d", name, n, r.numbers.Add(1))
	uid, ok := r.makeLauncher(name, pod, h)
	if !ok {
		return nil
	}
	for r.loading() {
		b := r.container(rng.Uint64(), rng.Uint64(), machines, pod, uid, h)
		b.client, b.ifName, b.network = 300_000, machineInterface, machines
		from := r.history.Now()
		a, ok := r.callers.Ask(r.ctx, rng, http.MethodPost, "", func() any { return r.add(b) },
			func() bool { return !r.loading() })
		if ok && a.Code == 0 {
			b.addr = addrOf(a)
			r.Count("operation ADD")
			r.note(b, b.addr, true, from, r.history.Now())
			if live, err := r.site.read(r.ctx, b.addr); err == nil {
				r.ledger.Hold(b.addr, b.who(), b.id, live.Version)
			}
			return b
		}
		if ok && a.Reason != ipam.ReasonClaimConflict && a.Reason != ipam.ReasonClaimNotFound {
			r.Wrong("ADD of machine %s is refused: %s: %s", name, a.Reason, a.Message)
		}
		r.Count("container of a machine refused") // a replica may not have heard yet
		r.DEL(b, rng, from)
		pause(r.load, 100*time.Millisecond)
	}
	r.removePod(machines, pod, uid)
	return nil
}

// refuseSecond has a second pod of a machine ask while the first one has the address.
func (r *round) refuseSecond(name string, n int, first *sandbox, rng *rand.Rand) {
	h := r.site.place(rng.IntN(hosts))
	pod := fmt.Sprintf("virt-launcher-%s-%d-second-%d", name, n, r.numbers.Add(1))
	uid, ok := r.makeLauncher(name, pod, h)
	if !ok {
		return
	}
	b := r.container(rng.Uint64(), rng.Uint64(), machines, pod, uid, h)
	b.client, b.ifName, b.network = 300_001, machineInterface, machines
	from := r.history.Now()
	a, err := r.callers.Once(r.ctx, rng, r.anyURL(rng), http.MethodPost, "", r.add(b))
	switch {
	case err != nil, a.Code != 0 && a.Temporary():
	case a.Code == 0:
		r.note(b, addrOf(a), true, from, r.history.Now())
		r.note(b, addrOf(a), false, from, judge.Never)
		r.Wrong("second pod %s of machine %s was told %s while %s has %s", b.pod, name, addrOf(a), first.pod, first.addr)
	case a.Reason == ipam.ReasonClaimConflict:
		r.Count(eventSecondPod)
	}
	r.DEL(b, rng, from)
	r.removePod(machines, pod, uid)
}

// makeLauncher makes a pod that runs a machine, as KubeVirt does.
func (r *round) makeLauncher(machine, pod string, h int) (uid string, ok bool) {
	networks := fmt.Sprintf(`[{"name":%q,"interface":%q,"ipam-claim-reference":%q}]`, machines, machineInterface, machine)
	uid, _, ok = r.makePodOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: machines, Name: pod, Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": networks},
	}}, h)
	return uid, ok
}

// awaitUnclaimed waits until nothing is kept for IPAMClaims that are gone. What is quarantined rests for longer.
func (r *round) awaitUnclaimed(deadline time.Time) {
	for {
		all, err := r.site.leases.List(r.ctx, "status.status=Reserved")
		all = slices.DeleteFunc(all, func(l lease.Lease) bool { return !l.IsRetained() })
		if err == nil && len(all) == 0 {
			return
		}
		if time.Now().After(deadline) || !pause(r.ctx, 200*time.Millisecond) {
			var kept []string
			for _, l := range all {
				kept = append(kept, fmt.Sprintf("%s for claim %s", l.Addr, l.Claim))
			}
			r.Wrong("addresses are kept for IPAMClaims that are gone (%v): %s", cmp.Or(err, context.Cause(r.ctx)),
				strings.Join(kept, ", "))
			return
		}
	}
}
