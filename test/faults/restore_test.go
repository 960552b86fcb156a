package faults_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// betweenRestores is the time for which a cluster lives on after its store was put back.
	betweenRestores = 3 * time.Minute
	// returned is by when every live pod has its address again.
	returned = time.Minute
)

// restoreEtcd puts etcd back to a copy that is some seconds old. What the copy does not know goes on: pods that are
// newer run until their kubelets notice, and the pods that have ended since are there again, until they are deleted.
func (r *round) restoreEtcd(rng *rand.Rand, check func(error)) {
	o := r.nextOutage(rng)
	if o.who == everybody {
		r.island.none.Lock() // a kubelet that is cut off ends nothing of what nobody knows of
		defer r.island.none.Unlock()
	}
	r.steady.Lock()
	defer r.steady.Unlock()
	if !r.loading() {
		return
	}
	cp, ctx := r.site.cp, context.WithoutCancel(r.ctx)
	data := filepath.Join(cp.Dir, "etcd")
	dir, err := os.MkdirTemp(cp.Dir, "copy")
	check(err)
	defer os.RemoveAll(dir)
	r.lasting.Store(true) // else few pods of the copy are left when it is put back
	defer r.lasting.Store(false)
	r.fault("copy of etcd", "", func() {
		check(cp.StopEtcd())
		check(os.CopyFS(dir, os.DirFS(data)))
		check(cp.StartEtcd(ctx))
	})
	r.staying.Store(o.who == everybody) // of others little is known by the copy
	defer r.staying.Store(false)
	r.while(rng, 4*time.Second, 10*time.Second)
	r.calm.Lock()
	if !r.loading() {
		r.calm.Unlock()
		return
	}
	killed := r.dies(rng, &o)
	r.journaled("etcd put back"+o.String(), namesOf(killed), func() {
		r.halted.Store(true) // a request that waits for an address of another pod would wait for ever
		for _, s := range r.slots {
			s.mu.Lock()
			defer s.mu.Unlock() //nolint:gocritic // all are held until the store is back
		}
		r.halted.Store(false)
		var back time.Time
		start := func() {
			for _, one := range killed {
				check(one.Start(ctx))
			}
		}
		r.ledger.restart(r.ctx, func() {
			check(cp.StopAPIServer())
			for _, one := range killed {
				check(one.Kill())
			}
			check(cp.StopEtcd())
			check(os.RemoveAll(data))
			check(os.CopyFS(data, os.DirFS(dir)))
			if o.raised {
				check(controlplane.RaiseVersions(data))
			}
			check(cp.StartEtcd(ctx))
			check(cp.StartAPIServer(ctx))
			r.look(&o)
			if !o.late {
				start()
			}
			back = time.Now()
		})
		r.reconcile(rng, back, o)
		if o.late {
			start()
		} else if o.who == everybody {
			r.showReceipts(rng, o)
		}
	})
	r.count(o)
	r.awaitReturn() // until then only the replicas know of the pods that the API server does not
	r.calm.Unlock()
}

func namesOf(all []*replica) string {
	var out []string
	for _, one := range all {
		out = append(out, one.name)
	}
	return strings.Join(out, " ")
}

// reconcile does what kubelets do when the API server knows of other pods than they run, since it is back. The locks of
// all slots are held.
func (r *round) reconcile(rng *rand.Rand, back time.Time, o outage) {
	until(r.ctx, func(context.Context) error { return r.patch(demandPool, `{"spec":{"cordoned":false}}`) })
	for h := range hosts { // the copy says what was true then, and kubelets tell again
		until(context.WithoutCancel(r.ctx), func(ctx context.Context) error { return r.site.writeNode(ctx, h) })
	}
	var pods corev1.PodList
	until(r.ctx, func(ctx context.Context) error {
		return r.site.admin.List(ctx, &pods,
			client.InNamespace(namespace))
	})
	known := map[string]bool{}
	for _, p := range pods.Items {
		known[string(p.UID)] = true
	}
	mine := map[string]bool{}
	for _, s := range r.slots {
		mine[s.uid] = true
		b := s.sandbox
		switch {
		case s.uid == "":
		case !known[s.uid] && (b == nil || s.taken):
			s.deletePod()
		case !known[s.uid]:
			r.Count("pod orphaned")
			if o.who == everybody {
				r.ledger.End(b.addr, b.id) // nobody knows that it has its address
			}
			if o.late {
				s.vanish()
				continue
			}
			s.orphan = back.Add(time.Duration(rng.IntN(8000)) * time.Millisecond)
			r.keep(b, back)
		case b != nil && !s.taken && o.who == everybody && !o.promises(s):
			r.Count("pod ended whose address the copy gives to others")
			r.ledger.End(b.addr, b.id)
			s.deletePodBefore(b)
		case b != nil && !s.taken && r.site.inTouch(s.host):
			r.Count("pod kept")
			b.anew = o.who == everybody
			until(r.ctx, func(ctx context.Context) error { return s.tell(ctx, b) })
		}
	}
	for _, p := range pods.Items {
		if mine[string(p.UID)] {
			continue
		}
		r.Count("pod back although it has ended")
		uid := p.UID
		until(r.ctx, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.site.admin.Delete(ctx, &p, client.GracePeriodSeconds(0),
				client.Preconditions{UID: &uid}))
		})
	}
}

// awaitReturn waits until every live pod has its address again.
func (r *round) awaitReturn() {
	for deadline := time.Now().Add(returned); ; {
		left := r.ledger.Awaited()
		if len(left) == 0 || r.ctx.Err() != nil {
			return
		}
		for a, h := range left {
			live, err := r.site.read(r.ctx, a)
			if err != nil {
				return
			}
			r.ledger.Seen(live)
			if _, still := r.ledger.Awaited()[a]; still && time.Now().After(deadline) {
				r.Wrong("%s did not come back to container %.8s of live pod %s within %s of the restore: it is %s, "+
					"container %.8s of %s (%s), updated %s; history %v",
					a, h.Container, h.Pod, returned, live.State, live.ContainerID, live.Who(), live.PodUID,
					live.Updated, live.History.Entries())
				return
			}
		}
		pause(r.ctx, 200*time.Millisecond)
	}
}

// endOrphan ends a pod of which the API server knows nothing, if the slot has one.
func (s *slot) endOrphan() {
	if s.orphan.IsZero() {
		return
	}
	b, from := s.sandbox, s.since(s.sandbox)
	if s.taken {
		b.over.Store(true)
	} else {
		s.last(b)
	}
	s.uid, s.sandbox, s.taken, s.orphan = "", nil, false, time.Time{}
	s.DEL(b, s.rng, from)
}
