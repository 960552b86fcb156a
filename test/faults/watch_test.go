package faults_test

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/judge"
)

// watcher tells a ledger of every version of every address, from the API server itself.
type watcher struct {
	*judge.Ledger
	mu sync.Mutex
	// cut ends the watch of this moment; reading is held while there is one.
	cut     context.CancelFunc
	reading sync.Mutex
	// from is the version to go on from, empty where there is none; reading is held by who looks at it.
	from    string
	stopped bool
}

// watch judges every version of every address as the API server tells of them, until the context ends. When
// it cannot go on where it was cut, it judges what is there.
func (l *watcher) watch(ctx context.Context, f *fixture) {
	for ctx.Err() == nil {
		l.read(ctx, f)
		pause(ctx, 20*time.Millisecond)
	}
}

// read lists, or watches until it is cut.
func (l *watcher) read(ctx context.Context, f *fixture) {
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
		return
	case l.from != "":
		l.from = l.follow(ctx, f, l.from)
		return
	}
	var list v1.BCSNetIPList
	if f.admin.List(ctx, &list) == nil {
		for _, o := range list.Items {
			l.judge(f, &o)
		}
		l.from = list.ResourceVersion
		l.Count("watch list")
	}
}

// restart begins anew after the store was put back by a function: versions go back, and every holder must be seen
// again.
func (l *watcher) restart(ctx context.Context, putBack func()) {
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
	l.PutBack()
	l.from = "" // a version of before says nothing of the store that is there now
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = false
}

// follow returns the version to go on from, "" when that is no longer possible.
func (l *watcher) follow(ctx context.Context, f *fixture, from string) string {
	w, err := f.admin.Watch(ctx, &v1.BCSNetIPList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
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
		l.judge(f, o)
		l.Count("watch event")
	}
	return from
}

func (l *watcher) judge(f *fixture, o *v1.BCSNetIP) {
	lease, err := store.Lease(o, false)
	if err != nil {
		l.Wrong("BCSNetIP %s cannot be read: %v", o.Name, err)
		return
	}
	f.trail.add(lease)
	l.Seen(lease)
}
