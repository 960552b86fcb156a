package history_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	recording "github.com/bcsnet/bcsnet/pkg/controller/history"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// recorded is a recorder with an index of its own, which writes as the controller does.
type recorded struct {
	*recording.Recorder
	index    *index.Index
	registry *prometheus.Registry
	version  uint64
	// writes and bytes count what was sent of the history.
	writes, bytes atomic.Int64
}

// count returns a transport that counts writes.
func (r *recorded) count(next http.RoundTripper) http.RoundTripper {
	return counting(func(q *http.Request) (*http.Response, error) {
		if q.Method == http.MethodPost || q.Method == http.MethodPut {
			r.writes.Add(1)
			r.bytes.Add(q.ContentLength)
		}
		return next.RoundTrip(q)
	})
}

type counting func(*http.Request) (*http.Response, error)

func (c counting) RoundTrip(q *http.Request) (*http.Response, error) { return c(q) }

// loadVersion is the resourceVersion at which a recorder's leases begin: above those of the API server's objects, so
// that the recorder finds no pool that changed before it began.
const loadVersion = 1 << 20

// newRecorded returns a recorder with so many leases in use.
func newRecorded(tb testing.TB, cfg *rest.Config, leases int) *recorded {
	tb.Helper()
	r := &recorded{index: index.New(), registry: prometheus.NewRegistry(), version: loadVersion}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.Wrap(r.count)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.CloseIdleConnections)
	scheme, err := controlplane.Scheme()
	if err != nil {
		tb.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{HTTPClient: h, Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	var fed atomic.Bool
	r.Recorder = recording.New(recording.Config{
		Client: c, Live: c, Index: r.index, Synced: fed.Load, Restarts: func() uint64 { return 0 },
		Ready: func() error { return nil }, Now: time.Now, Retention: 30 * 24 * time.Hour, MaxParts: 500,
		Every: 50 * time.Millisecond, Replica: "load", Registry: r.registry, Log: slog.New(slog.DiscardHandler),
	})
	var all []lease.Lease
	for n := range leases {
		l := lease.Lease{Addr: addressOf(n), Version: r.version}
		l, _ = lease.Bind(l, lease.Params{Pool: "load", Bits: 16}, podOf(n, 0), lease.Retention{}, time.Now())
		l.Version = r.version
		all = append(all, l)
	}
	r.index.Feed.Replace(all, r.version)
	fed.Store(true)
	return r
}

func addressOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 20, byte(n >> 8), byte(n)}) }

// podOf is the holder of an address after so many others, with a name as of a Deployment.
func podOf(n, turn int) lease.Holder {
	random := rand.New(rand.NewPCG(uint64(n), uint64(turn)))
	return lease.Holder{
		Namespace: fmt.Sprint("team-", n%64), PodName: fmt.Sprintf("web-%d-%09x-%05x", n%256, random.Uint32(), random.IntN(1<<20)),
		PodUID: fmt.Sprint(n, "-", turn), ContainerID: fmt.Sprint(n, "/", turn), IfName: "eth0",
		Host: netip.AddrFrom4([4]byte{10, 0, byte(n % 2), byte(n >> 8)}),
	}
}

// pass has an address go from its holder to the next one: two changes, of which one is a record.
func (r *recorded) pass(n, turn int) {
	l, _ := r.index.Leases.Get(addressOf(n))
	freed, _ := lease.Release(l, time.Now(), lease.Change{})
	r.version++
	freed.Version = r.version
	r.index.Feed.Watched(freed)
	next, _ := lease.Bind(freed, lease.Params{Pool: "load", Bits: 16}, podOf(n, turn), lease.Retention{}, time.Now())
	r.version++
	next.Version = r.version
	r.index.Feed.Watched(next)
}

// counted returns what a metric says.
func (r *recorded) counted(name string) float64 {
	families, err := r.registry.Gather()
	if err != nil {
		return -1
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// start leads until the test ends.
func (r *recorded) start(tb testing.TB) (also func(func(context.Context) error)) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	also = func(run func(context.Context) error) { running.Go(func() { _ = run(ctx) }) }
	tb.Cleanup(func() { cancel(); running.Wait() })
	also(r.Start)
	return also
}

// What does not fit into the queue is dropped, and the history has a gap that says so. Who offers it waits for nothing.
func TestDropsAreAGap(t *testing.T) {
	f := at(t)
	now := time.Now().UTC().Truncate(time.Second)
	data, n := packed(t, history.Record{Time: now, What: history.WhatGaveUp, Owner: "earlier"})
	earlier := &v1.BCSNetHistory{ObjectMeta: metav1.ObjectMeta{Name: history.Name(now, "earlier")}, Since: now.Format(time.RFC3339),
		Until: now.Format(time.RFC3339), Records: n, Version: strconv.Itoa(loadVersion), Data: data}
	if err := f.admin.Create(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	r := newRecorded(t, f.cfg, 1)
	also := r.start(t)
	controlplane.Eventually(t, func() error {
		if n := r.counted("bcsnet_history_parts"); n != 1 {
			return fmt.Errorf("the recorder has found %v parts", n)
		}
		return nil
	})
	const fits, more = 8192, 100
	for turn := range fits + more {
		r.pass(0, turn+1)
	}
	if n := r.counted("bcsnet_history_dropped_total"); n != more {
		t.Errorf("%v records were dropped, want %d", n, more)
	}
	also(r.Run)
	controlplane.Eventually(t, func() error {
		if n := r.counted("bcsnet_history_records_total"); n != fits+1 {
			return fmt.Errorf("%v records were written, want %d", n, fits+1)
		}
		return nil
	})
	all, err := f.records()
	if err != nil {
		t.Fatal(err)
	}
	gaps := 0
	for _, r := range all {
		if r.What == history.WhatGap {
			gaps++
			if !strings.Contains(r.Reason, "100 records dropped") || r.Since.After(r.Time) {
				t.Errorf("the gap is %+v", r)
			}
		}
	}
	if gaps != 1 {
		t.Errorf("%d gaps", gaps)
	}
}

// BenchmarkTenChangesASecond has 65,536 leases, and ten of them go to other pods each second, of which every ten
// seconds are written: an hour of it, without the waiting.
func BenchmarkTenChangesASecond(b *testing.B) {
	if err := installed(); err != nil {
		b.Fatal(err)
	}
	cfg, err := cluster.ServiceAccountConfig(b.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		b.Fatal(err)
	}
	admin, err := cluster.Admin()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := admin.DeleteAllOf(b.Context(), &v1.BCSNetHistory{}); err != nil {
			b.Fatal(err)
		}
		const leases, rounds, each = 65536, 360, 100
		r := newRecorded(b, cfg, leases)
		before := heap()
		also := r.start(b)
		also(r.Run)
		var offering time.Duration
		for round := range rounds {
			began := time.Now()
			for i := range each {
				n := (round*each + i) * 7919 % leases
				r.pass(n, round+1)
			}
			offering += time.Since(began)
			if err := controlplane.WaitFor(b.Context(), time.Minute, func() error {
				if n := r.counted("bcsnet_history_records_total"); n < float64((round+1)*each) {
					return fmt.Errorf("%v records", n)
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(r.writes.Load())/3600, "writes/s")
		b.ReportMetric(float64(r.bytes.Load())/(rounds*each), "sent-B/record")
		b.ReportMetric(r.counted("bcsnet_history_parts"), "objects/h")
		b.ReportMetric(float64(offering.Nanoseconds())/(rounds*each), "ns/pass")
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
