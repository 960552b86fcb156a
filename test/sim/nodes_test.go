package sim_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// clock is how far that of a host is ahead.
func (f *fixture) clock(host int) time.Duration {
	if !f.plan.Clocks {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ahead, was := f.clocks[host]; was {
		return ahead
	}
	return wrong(draw(f.plan.Seed, "host clock", host))
}

// wrong is how far a clock is ahead: one in six is eight hours behind, as one that takes local time for UTC, and one in
// six two hours ahead.
func wrong(rng *rand.Rand) time.Duration {
	switch rng.IntN(6) {
	case 0:
		return -8 * time.Hour
	case 1:
		return 2 * time.Hour
	default:
		return 0
	}
}

// setClock sets the clock of a host, as its operator does or NTP at last.
func (f *fixture) setClock(rng *rand.Rand) {
	if !f.plan.Clocks {
		return
	}
	h := rng.IntN(hosts)
	before, now := f.clock(h), wrong(rng)
	if before == now {
		now = -8*time.Hour - before // another one
	}
	f.fault("clock of a host set")
	f.note("the clock of %s is %s ahead, which was %s", node(h), now, before)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clocks[h] = now
}

// beat renews the Leases of the nodes that are in touch until the run ends, as their kubelets do.
func (f *fixture) beat() {
	for f.pause(f.ctx, 10*time.Second) {
		for i := range hosts + machineHosts {
			f.mu.Lock()
			off := f.cutOff[i]
			f.mu.Unlock()
			if !off {
				f.renew(i)
			}
		}
	}
}

func (f *fixture) renew(i int) {
	f.do(http.MethodPatch, fmt.Sprintf("%s/%s", beats, node(i)), object{"spec": object{"renewTime": f.micro()}})
}

// ready says of a node whether it is.
func (f *fixture) ready(i int, status string) object {
	condition := object{"type": "Ready", "status": status}
	if status != "True" {
		condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	}
	return object{"metadata": object{"name": node(i)}, "status": object{
		"addresses":  []object{{"type": "InternalIP", "address": host(i)}},
		"conditions": []object{condition},
	}}
}

// ending is the time that a kubelet takes at most to end the containers of pods that it does not find any more.
const ending = 20 * time.Second

// silence is by when a node whose Lease is not renewed is no longer ready.
const silence = 40 * time.Second

// cut takes a host off the network for a time: its Lease is not renewed, nothing is begun and ended there, and its
// containers run on. Some of its pods are deleted by force: their containers end when the host is back, some seconds
// after its Lease is renewed.
func (f *fixture) cut(rng *rand.Rand) {
	h := rng.IntN(hosts)
	its, goOn, ok := f.halt(func(s *slot) bool { return s.host == h })
	if !ok {
		return
	}
	f.fault("node cut off")
	for _, s := range its {
		s.rng = draw(f.plan.Seed, "cut", s.number, s.steps)
		s.endOrphan()
	}
	f.outage(rng, h, func() {
		for _, s := range its {
			if s.sandbox == nil || s.taken || rng.IntN(2) == 0 {
				continue
			}
			s.orphaned()
			s.orphan = time.Now().Add(time.Hour)
		}
	})
	for _, s := range its {
		if !s.orphan.IsZero() {
			s.orphan = time.Now().Add(moment(rng, 0, ending))
		}
	}
	goOn()
}

// outage has a host out of touch for a time, in which something happens, and returns when it is back: its Lease is
// renewed, and it has not heard yet which pods are no more.
func (f *fixture) outage(rng *rand.Rand, h int, meanwhile func()) {
	f.setCutOff(h, true)
	away := moment(rng, 5*time.Second, 55*time.Second)
	early := moment(rng, 0, away/3)
	wait(early)
	meanwhile()
	wait(min(away, silence) - early)
	if away > silence {
		_, _, _ = f.insist(http.MethodPut, "/api/v1/nodes/"+node(h)+"/status", f.ready(h, "Unknown"))
		wait(away - silence)
		_, _, _ = f.insist(http.MethodPut, "/api/v1/nodes/"+node(h)+"/status", f.ready(h, "True"))
	}
	f.note("%s is back", node(h))
	f.setCutOff(h, false)
	f.renew(h)
}

// orphaned deletes the pod of a slot by force, while its containers run on.
func (s *slot) orphaned() {
	s.verdict.Count("pod deleted by force")
	s.note("pod %s (%s) on %s is deleted by force", s.name, s.uid, node(s.host))
	_, _, _ = s.insist(http.MethodDelete, s.pods()+"/"+s.name,
		object{"gracePeriodSeconds": 0, "preconditions": object{"uid": s.uid}})
}

func (f *fixture) setCutOff(h int, off bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutOff[h] = off
}

// halt waits until some slots have no request under way. It returns them, and what lets them go on. One mishap at a
// time has slots halted: where another one has, nothing is halted and ok is false.
func (f *fixture) halt(which func(*slot) bool) (all []*slot, goOn func(), ok bool) {
	select {
	case f.halting <- struct{}{}:
	default:
		return nil, nil, false
	}
	f.halted.Store(true) // a request that waits for an address of another pod would wait for ever
	for _, s := range f.slots {
		if which(s) {
			s.lock()
			all = append(all, s)
		}
	}
	f.halted.Store(false)
	goOn = func() {
		for _, s := range all {
			s.unlock()
		}
		<-f.halting
	}
	if !f.loading() {
		goOn()
		return nil, nil, false
	}
	return all, goOn, true
}
