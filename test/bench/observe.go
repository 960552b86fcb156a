package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// poolStatus and claimStatus are what the controller writes besides leases.
const poolStatus, claimStatus = "bcsnetpools/status", "bcsnetipclaims/status"

// apiRequests reads the API server's own counters: "VERB resource" to number.
func (b *bench) apiRequests(ctx context.Context) (map[string]float64, error) {
	set, err := kubernetes.NewForConfig(b.cp.Config)
	if err != nil {
		return nil, err
	}
	body, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		resource := labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			resource += "/" + sub
		}
		switch resource {
		case v1.IPResource, "pods", poolStatus, claimStatus:
			if labels["verb"] != "WATCH" {
				out[labels["verb"]+" "+resource] += m.GetCounter().GetValue()
			}
		}
	}
	return out, nil
}

// memory returns the controller's resident memory in bytes, by its own metrics.
func (b *bench) memory(ctx context.Context) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.controller.MetricsURL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := b.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return 0, err
	}
	for _, m := range families["process_resident_memory_bytes"].GetMetric() {
		return m.GetGauge().GetValue(), nil
	}
	return 0, fmt.Errorf("the controller has no metric process_resident_memory_bytes")
}

// indexBytes measures how much heap an index takes per address, filled with what the API server has.
func indexBytes(ctx context.Context, c *store.Client) (float64, error) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	x := index.New()
	if err := c.Each(ctx, "", func(l lease.Lease) error { x.Feed.Watched(l); return nil }); err != nil {
		return 0, err
	}
	after := heap()
	n := x.Leases.Len()
	runtime.KeepAlive(x)
	return float64(after-before) / float64(n), nil
}

// drop deletes a pool without the wait for late requests: the bench makes none.
func (b *bench) drop(ctx context.Context, p *v1.BCSNetPool) error {
	if err := b.empty(ctx, p); err != nil {
		return err
	}
	if err := b.admin.Delete(ctx, p); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(b.change(ctx, p, func() { p.Finalizers = nil }))
}

// change reads a pool, changes it and writes it, again where the controller was faster.
func (b *bench) change(ctx context.Context, p *v1.BCSNetPool, by func()) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := b.admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		by()
		return b.admin.Update(ctx, p)
	})
}

// empty takes a pool's hosts away, so that nobody draws from it, and removes its objects.
func (b *bench) empty(ctx context.Context, p *v1.BCSNetPool) error {
	if err := b.change(ctx, p, func() { p.Spec.Hosts, p.Spec.AvailableIPs = nil, nil }); err != nil {
		return err
	}
	all, err := b.filler.List(ctx, "spec.pool="+p.Name)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(64)
	for _, l := range all {
		group.Go(func() error {
			if next, changed := lease.Release(l, b.filler.Now(), lease.Change{}); changed {
				if stored, err := b.filler.Write(ctx, next); err == nil { // else the controller was faster
					l = stored
				}
			}
			_ = b.filler.Delete(ctx, l) // the controller may be faster
			return nil
		})
	}
	return group.Wait()
}

// cpu returns the processor time that this process and its children have used so far, by process name.
func cpu() (map[string]time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	all, err := processes()
	out := map[string]time.Duration{}
	for _, p := range all {
		user, _ := strconv.Atoi(p.stat[11])
		system, _ := strconv.Atoi(p.stat[12])
		out[p.name] += time.Duration(user+system) * tick
	}
	return out, err
}

// process is this one or a child of it. stat are the fields of its /proc/PID/stat from the state on.
type process struct {
	id, name string
	stat     []string
}

func processes() (all []process, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	self := strconv.Itoa(os.Getpid())
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		open, shut := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
		p := process{
			id: filepath.Base(filepath.Dir(path)), name: string(text[open+1 : shut]),
			stat: strings.Fields(string(text[shut+1:])),
		}
		if parent := p.stat[1]; p.id == self || parent == self {
			all = append(all, p)
		}
	}
	return all, nil
}

// atRest waits until all processes have nearly nothing to do, or half a minute: a controller that starts
// has the API server read and encode every lease, and both clean up after that for seconds.
func atRest(ctx context.Context) error {
	const interval, busy = 500 * time.Millisecond, 0.1
	tick := time.NewTicker(interval)
	defer tick.Stop()
	before := -time.Hour
	for range 60 {
		all, err := cpu()
		if err != nil {
			return err
		}
		var now time.Duration
		for _, t := range all {
			now += t
		}
		if float64(now-before) < busy*float64(interval) {
			return nil
		}
		before = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
