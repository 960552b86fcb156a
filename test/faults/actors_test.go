package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	names "github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// journal is what was done to the system, and when.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) tail(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[max(0, len(j.lines)-n):], "\n")
}

// fault does something bad, and tells of it.
func (r *round) fault(what, whom string, do func()) {
	r.calm.RLock()
	defer r.calm.RUnlock()
	r.journaled(what, whom, do)
}

// journaled does something and writes down when.
func (r *round) journaled(what, whom string, do func()) {
	from, at := r.history.Now(), time.Now()
	do()
	r.journal.mu.Lock()
	r.journal.lines = append(r.journal.lines, fmt.Sprintf("%s, %8.3f to %8.3f s: %s %s",
		at.Format("15:04:05.000"), from.Seconds(), r.history.Now().Seconds(), what, whom))
	r.journal.mu.Unlock()
	r.Count("fault " + what)
}

// actors are those who make trouble at the same time, each at random, until the load ends; then they mend
// what they broke. Of the replicas one at least is left alone, but for the leader's watches.
func (r *round) actors() []func(*rand.Rand) {
	two := make(chan struct{}, len(r.site.replicas)-1)
	all := []func(*rand.Rand){r.disturbControlPlane, r.operate, r.blind, r.isolate, r.crowd, r.tenants,
		r.runMachines, r.readdress, r.hurry}
	for _, one := range r.site.replicas {
		all = append(all, func(rng *rand.Rand) { r.disturb(one, two, rng) })
	}
	return all
}

// between waits for a time around a mean; false when the load is over.
func (r *round) between(rng *rand.Rand, mean time.Duration) bool {
	return pause(r.load, time.Duration(float64(mean)*min(rng.ExpFloat64(), 3)))
}

// while keeps something up for a time, or until the load ends.
func (r *round) while(rng *rand.Rand, from, to time.Duration) {
	pause(r.load, from+time.Duration(rng.Int64N(int64(to-from))))
}

// choice is one thing to do, and how often beside the others.
type choice struct {
	weight int
	what   string
	do     func()
}

func choose(rng *rand.Rand, all []choice) choice {
	sum := 0
	for _, c := range all {
		sum += c.weight
	}
	n := rng.IntN(sum)
	for _, c := range all {
		if n -= c.weight; n < 0 {
			return c
		}
	}
	panic("unreachable")
}

// leaseDuration is the time for which the leader's Lease lasts without being renewed: shorter than as shipped, so that
// it is lost often.
const leaseDuration = 4 * time.Second

// disturb makes trouble for one replica.
func (r *round) disturb(one *replica, two chan struct{}, rng *rand.Rand) {
	check := func(err error) {
		if err != nil {
			r.Wrong(ownFault+"%s: %v", one.name, err)
		}
	}
	restart := func() { check(one.Start(context.WithoutCancel(r.ctx))) }
	frozen := func(from, to time.Duration) {
		check(one.Pause())
		r.while(rng, from, to)
		check(one.Resume())
	}
	all := []choice{
		{30, "kill -9", func() {
			check(one.Kill())
			r.while(rng, 0, 2*time.Second)
			restart()
		}},
		{10, "SIGTERM", func() {
			check(one.Stop())
			restart()
		}},
		{8, "SIGSTOP for longer than its Lease", func() {
			frozen(leaseDuration+time.Second,
				leaseDuration+3*time.Second)
		}},
		{12, "SIGSTOP", func() { frozen(time.Second/10, 4*time.Second) }},
		{15, "connections cut", one.proxy.Reset},
		{15, "answers lost", func() {
			one.proxy.KeepAnswers(true)
			r.while(rng, time.Second/10, 2*time.Second)
			one.proxy.KeepAnswers(false)
			one.proxy.Reset() // what misses bytes is of no use
		}},
		{10, "requests lost", func() {
			one.proxy.KeepRequests(true)
			r.while(rng, time.Second/10, 4*time.Second)
			one.proxy.KeepRequests(false)
			one.proxy.Reset() // what misses bytes is of no use
		}},
		{15, "latency", func() {
			one.proxy.Delay(time.Duration(5+rng.IntN(200)) * time.Millisecond)
			r.while(rng, time.Second, 5*time.Second)
			one.proxy.Delay(0)
		}},
		{15, "watches held back", func() {
			if one.silent.Load() {
				return // they are held for longer
			}
			one.proxy.HoldStreams(intercept.AllStreams)
			r.while(rng, time.Second, 8*time.Second)
			one.proxy.HoldStreams(0)
		}},
	}
	for r.between(rng, 5*time.Second) {
		select {
		case two <- struct{}{}:
		case <-r.load.Done():
			return
		}
		c := choose(rng, all)
		r.fault(c.what, one.name, c.do)
		<-two
	}
}

// blind holds back some of the leader's watches, and then the others: it knows of pods but not of addresses, or the
// other way round, while it decides for all. At times all are silent, for long.
func (r *round) blind(rng *rand.Rand) {
	for n := 0; r.between(rng, 4*time.Second); n++ {
		if n%longSilences == 2 {
			r.silence(rng)
			continue
		}
		lot := rng.Uint64()
		for _, which := range []uint64{lot, ^lot} {
			leader := r.leader(rng)
			r.fault("some watches of the leader held back", leader.name, func() {
				leader.proxy.HoldStreams(which)
				r.while(rng, time.Second/2, 2*time.Second)
				leader.proxy.HoldStreams(0)
			})
		}
	}
}

// longSilences is the number of times that the leader is blind for moments until its watches are silent for long.
const longSilences = 20

// silence holds the leader's watches for two minutes, in a short round for as long as it takes a leader to notice. It
// hands over meanwhile, and all are served.
func (r *round) silence(rng *rand.Rand) {
	leader := r.leader(rng)
	r.journaled("all watches of the leader silent", leader.name, func() {
		leader.silent.Store(true)
		defer leader.silent.Store(false)
		leader.proxy.HoldStreams(intercept.AllStreams)
		defer leader.proxy.HoldStreams(0)
		for began, kept := time.Now(), true; time.Since(began) < min(2*time.Minute, r.length/5) &&
			pause(r.load, time.Second); {
			if kept && r.leader(rng) != leader {
				kept = false
				r.Count("leader handed over")
			}
		}
	})
}

// leader is the replica that holds the Lease; any where that is not to be learnt.
func (r *round) leader(rng *rand.Rand) *replica {
	ctx, cancel := context.WithTimeout(r.load, plugin.Attempt)
	defer cancel()
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: controlplane.SystemNamespace, Name: leadership.LeaseName}
	if err := r.site.admin.Get(ctx, key, &lease); err == nil && lease.Spec.HolderIdentity != nil {
		for _, one := range r.site.replicas {
			if one.URL == names.Parse(*lease.Spec.HolderIdentity).URL {
				return one
			}
		}
	}
	return r.site.replicas[rng.IntN(len(r.site.replicas))]
}

// disturbControlPlane makes trouble for the API server and etcd.
func (r *round) disturbControlPlane(rng *rand.Rand) {
	cp, ctx := r.site.cp, context.WithoutCancel(r.ctx)
	check := func(err error) {
		if err != nil {
			r.Wrong(ownFault+"the control plane: %v", err)
		}
	}
	all := []choice{
		{3, "kill of the API server", func() {
			check(cp.KillAPIServer())
			check(cp.StartAPIServer(ctx))
		}},
		{3, "kill of etcd", func() {
			check(cp.KillEtcd())
			r.while(rng, 0, time.Second)
			check(cp.StartEtcd(ctx))
		}},
		{3, "SIGSTOP of the API server", func() {
			check(cp.PauseAPIServer())
			r.while(rng, time.Second/10, 4*time.Second)
			check(cp.ResumeAPIServer())
		}},
	}
	// An API server takes nine seconds to start. In a long round it is up most of the time: what is down cannot go
	// wrong.
	pause(r.load, time.Duration(3+rng.IntN(5))*time.Second)
	restored := time.Now()
	for r.restoreEtcd(rng, check); r.between(rng, max(15*time.Second, r.length/8)); {
		if time.Since(restored) > betweenRestores {
			restored = time.Now()
			r.restoreEtcd(rng, check)
			continue
		}
		c := choose(rng, all)
		r.fault(c.what, "", c.do)
	}
}
