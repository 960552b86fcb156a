package sim_test

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/judge"
)

// backSoon is by when the addresses of a node come back of which somebody vouches that it is off.
const backSoon = 5 * time.Minute

// maxLeft bounds the pods that are deleted on a node that is off: with those that others forget they are no more than
// the brake of the collection lets pass.
const maxLeft = 3

// powerOff has a machine go off, and an operator vouch for that with the taint out-of-service, until it is back. Some
// of its pods are deleted meanwhile: their addresses come back before the machine does. The others keep theirs.
func (f *fixture) powerOff(rng *rand.Rand) {
	h := rng.IntN(hosts)
	its, goOn, ok := f.halt(func(s *slot) bool { return s.host == h })
	if !ok {
		return
	}
	defer goOn()
	f.fault("node off")
	f.setCutOff(h, true)
	for _, s := range its {
		s.rng = draw(f.plan.Seed, "off", s.number, s.steps)
		s.endForced(s.delNow)
		s.endOrphan()
	}
	off := f.history.Now()
	wait(silence)
	_, _, _ = f.insist(http.MethodPut, "/api/v1/nodes/"+node(h)+"/status", f.ready(h, "Unknown"))
	wait(moment(rng, time.Second, 10*time.Second))
	f.taint(h, object{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"})
	f.fault("node out of service")
	var left []*sandbox
	for _, s := range its {
		if b := s.sandbox; b != nil && !s.taken && !s.sticky() && rng.IntN(2) == 0 && len(left) < maxLeft {
			s.last(b)
			s.deletePod()
			s.noteChange(b, b.addrs, false, off, judge.Never)
			f.verdict.Count("pod deleted on a node out of service")
			left = append(left, b)
		}
	}
	for _, b := range left {
		f.awaitBack(b)
	}
	f.taint(h)
	_, _, _ = f.insist(http.MethodPut, "/api/v1/nodes/"+node(h)+"/status", f.ready(h, "True"))
	f.note("%s is back", node(h))
	f.setCutOff(h, false)
	f.renew(h)
}

// taint gives a node these taints and no others.
func (f *fixture) taint(h int, taints ...object) {
	f.note("%s has the taints %v", node(h), taints)
	_, _, _ = f.insist(http.MethodPatch, "/api/v1/nodes/"+node(h), object{"spec": object{"taints": taints}})
}

// awaitBack waits until a container has none of its addresses any more.
func (f *fixture) awaitBack(b *sandbox) {
	for deadline := time.Now().Add(backSoon); !f.verdict.Failed() && f.ctx.Err() == nil; wait(time.Second) {
		held := false
		for _, a := range b.addrs {
			_, its := f.read(a).From(func(l lease.Lease) bool { return l.State == lease.Active && l.ContainerID == b.id })
			held = held || its
		}
		switch {
		case !held:
			f.verdict.Count("addresses back from a node out of service")
			return
		case time.Now().After(deadline):
			f.verdict.Wrong("%v of container %.8s of %s, on a node out of service, did not come back within %s", b.addrs,
				b.id, b.pod, backSoon)
		}
	}
}
