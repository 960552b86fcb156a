package faults_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ledger is who must have which address now: from the answer to an ADD until its pod is about to give the
// address up, or an operator to take it.
type ledger struct {
	*verdict
	mu sync.Mutex
	by map[netip.Addr]holding
	// cut ends the watch of this moment; reading is held while there is one.
	cut     context.CancelFunc
	reading sync.Mutex
	stopped bool
}

type holding struct {
	pod, container string
	since          uint64 // the version of the object that was answered
	// awaited: the store was put back, and the address was not seen with its container since.
	awaited bool
}

func newLedger(v *verdict) *ledger {
	return &ledger{verdict: v, by: map[netip.Addr]holding{}}
}

// hold notes that a container has an address as of a version of its object.
func (l *ledger) hold(a netip.Addr, pod, container string, since uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, taken := l.by[a]; taken && now.container != container {
		l.wrong("%s was given to container %.8s of %s while container %.8s of %s has it", a, container, pod, now.container, now.pod)
		return
	}
	l.by[a] = holding{pod: pod, container: container, since: since}
}

// end says that a holder may lose its address from now on.
func (l *ledger) end(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, a)
}

// all is a copy of the ledger.
func (l *ledger) all() map[netip.Addr]holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.by)
}

// seen judges one version of one address.
func (l *ledger) seen(now ipam.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.by[now.Addr]
	own := now.State == ipam.Active && now.ContainerID == h.container
	switch {
	case held && h.awaited:
		if own {
			l.by[now.Addr] = holding{pod: h.pod, container: h.container, since: now.Version}
		}
		return
	case !held, now.Version <= h.since, own:
		return
	}
	l.wrong("live pod %s (container %.8s) lost %s: version %d is %s, container %.8s of %s; history %v",
		h.pod, h.container, now.Addr, now.Version, now.State, now.ContainerID, now.Who(), now.History.Entries())
	delete(l.by, now.Addr)
}

// watch judges every version of every address as the API server tells of them, until the context ends. When
// it cannot go on where it was cut, it judges what is there.
func (l *ledger) watch(ctx context.Context, s *site) {
	var from string
	for ctx.Err() == nil {
		from = l.read(ctx, s, from)
		pause(ctx, 20*time.Millisecond)
	}
}

// read lists, or watches until it is cut. It returns the version to go on from.
func (l *ledger) read(ctx context.Context, s *site, from string) string {
	l.reading.Lock()
	defer l.reading.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	stopped := l.stopped
	l.cut = cancel
	l.mu.Unlock()
	switch {
	case stopped:
		return ""
	case from != "":
		return l.follow(ctx, s, from)
	}
	var list v1.BCSNetIPList
	if s.admin.List(ctx, &list) == nil {
		for _, o := range list.Items {
			l.judge(&o)
		}
		from = list.ResourceVersion
		l.count("watch list")
	}
	return from
}

// restart begins anew after the store was put back by a function: versions go back, and every holder must be seen again.
func (l *ledger) restart(ctx context.Context, putBack func()) {
	l.mu.Lock()
	l.stopped = true
	if l.cut != nil {
		l.cut()
	}
	l.mu.Unlock()
	for !l.reading.TryLock() {
		pause(ctx, time.Millisecond)
	}
	defer l.reading.Unlock()
	putBack()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = false
	for a, h := range l.by {
		h.awaited = true
		l.by[a] = h
	}
}

// awaits reports whether an address was not seen with its container since the store was put back.
func (l *ledger) awaits(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[a].awaited
}

// follow returns the version to go on from, "" when that is no longer possible.
func (l *ledger) follow(ctx context.Context, s *site, from string) string {
	w, err := s.admin.Watch(ctx, &v1.BCSNetIPList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return ""
		}
		return from
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(*v1.BCSNetIP)
		if !ok || !slices.Contains([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}, e.Type) {
			return ""
		}
		from = o.ResourceVersion
		if e.Type == watch.Deleted {
			o.Status = v1.BCSNetIPStatus{}
		}
		l.judge(o)
		l.count("watch event")
	}
	return from
}

func (l *ledger) judge(o *v1.BCSNetIP) {
	lease, err := store.Lease(o, false)
	if err != nil {
		l.wrong("BCSNetIP %s cannot be read: %v", o.Name, err)
		return
	}
	l.seen(lease)
}
