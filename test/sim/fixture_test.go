package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
	"github.com/bcsnet/bcsnet/test/sim/apiserver"
)

const (
	namespace = "sim"
	hosts     = 6
	replicas  = 3
)

// fixture is a cluster in virtual time: the API server, three replicas, the kubelets of the hosts, an operator, and
// what goes wrong.
type fixture struct {
	plan     plan
	verdict  *judge.Verdict
	history  *judge.History
	ledger   *judge.Ledger
	server   *apiserver.Server
	replicas []*replica
	slots    []*slot
	machines []*machine
	callers  *plugin.Callers

	ctx, load  context.Context // load ends when no more faults and new pods are wanted
	background sync.WaitGroup  // requests of kubelets that come late
	under      sync.WaitGroup  // requests under way to the API server
	journal    tail
	lasted     time.Duration // until the load ended

	mu               sync.Mutex
	down             time.Time // until when nobody reaches the API server
	busy             time.Time // until when it turns requests away
	turnedAway       float64
	restored         time.Time // when its store was put back last
	forgot           int
	cutOff           map[int]bool               // hosts
	clocks           map[int]time.Duration      // of hosts that were set
	deleted          map[string]map[string]bool // which processes answered the DEL of a container
	last             map[netip.Addr]lease.Lease // versions of the addresses
	given            map[string]bool            // containers, with the address that they were given
	pace             time.Duration              // between two requests, until overloaded
	overloaded, turn time.Time
	lasting          atomic.Bool   // pods are to live longer
	staying          atomic.Int32  // more than 0 while some pods are to stay as they are
	halted           atomic.Bool   // requests are not to wait
	mishap           chan struct{} // has an element for each mishap under way
	halting          chan struct{} // has an element while slots are halted
	puttingBack      chan struct{} // has an element while the store is put back
	gone             map[int]bool  // replicas that are down
}

// newFixture makes a cluster whose replicas have not started.
func newFixture(ctx context.Context, t testing.TB, p plan) *fixture {
	t.Helper()
	server, err := apiserver.New()
	if err != nil {
		t.Fatal(err)
	}
	v := judge.NewVerdict()
	f := &fixture{
		plan: p, verdict: v, history: judge.NewHistory(), ledger: judge.NewLedger(v), server: server, ctx: ctx,
		turnedAway: 0.5, gone: map[int]bool{},
		cutOff: map[int]bool{}, clocks: map[int]time.Duration{}, deleted: map[string]map[string]bool{},
		last: map[netip.Addr]lease.Lease{}, given: map[string]bool{},
		mishap: make(chan struct{}, maxMishaps), puttingBack: make(chan struct{}, 1), halting: make(chan struct{}, 1),
	}
	caller := &http.Client{Transport: &http.Transport{DialContext: f.dial, MaxIdleConnsPerHost: 64}}
	f.callers = &plugin.Callers{HTTP: caller, Count: v.Count, Delay: delay, Wrong: v.Wrong}
	server.Written = f.written
	skew := []time.Duration{0, 0, time.Second, -time.Second, 7 * time.Minute, -3 * time.Hour}
	for i := range replicas {
		r := &replica{world: f, number: i, name: fmt.Sprintf("replica-%d", i)}
		if p.Clocks {
			r.ahead = skew[draw(p.Seed, "clock", i).IntN(len(skew))]
		}
		f.replicas = append(f.replicas, r)
		f.callers.URLs = append(f.callers.URLs, "http://"+r.name)
	}
	f.populate(t)
	return f
}

func host(i int) string { return fmt.Sprintf("10.0.0.%d", 11+i) }
func node(i int) string { return fmt.Sprintf("node-%d", i) }

const (
	apis  = "/apis/networkextension.bkbcs.tencent.com/v1/"
	beats = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
)

// populate makes the namespaces, the nodes, which are ready, and the pools.
func (f *fixture) populate(t testing.TB) {
	t.Helper()
	must := func(method, path string, body any) {
		if code, answer := f.do(method, path, body); code >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %v", method, path, code, answer)
		}
	}
	for _, ns := range []string{namespace, "default", "bcsnet-system", "kube-node-lease"} {
		must(http.MethodPost, "/api/v1/namespaces", object{"metadata": object{"name": ns}})
	}
	f.makeNamespace()
	var all []string
	for i := range hosts + machineHosts {
		all = append(all, host(i))
		must(http.MethodPost, "/api/v1/nodes", object{"metadata": object{"name": node(i)}})
		must(http.MethodPut, "/api/v1/nodes/"+node(i)+"/status", f.ready(i, "True"))
		must(http.MethodPost, beats, object{
			"metadata": object{"name": node(i)}, "spec": object{"holderIdentity": node(i), "leaseDurationSeconds": 40, "renewTime": f.micro()},
		})
	}
	// Fewer addresses than pods want at the worst moments: the pools run full. Requests name no network, and get an
	// address of the first pool that has one, of one family, or in the last of both.
	n := f.plan.Slots/3 + 2
	for _, p := range []object{
		{"metadata": object{"name": "alpha"}, "spec": object{"net": "10.1.0.0", "mask": 16, "gateway": "10.1.0.1", "availableIPs": []string{span("10.1.0.10", n)}, "priority": 1, "network": "alpha"}},
		{"metadata": object{"name": "beta"}, "spec": object{"net": "fd00:2::", "mask": 64, "gateway": "fd00:2::1", "availableIPs": []string{span("fd00:2::10", n)}, "network": "beta", "materialize": "OnDemand", "cooldown": cooldown.String()}},
		{"metadata": object{"name": "gamma4"}, "spec": object{"net": "10.3.0.0", "mask": 16, "gateway": "10.3.0.1", "availableIPs": []string{span("10.3.0.10", n)}, "network": "gamma", "priority": -1, "materialize": "OnDemand", "allocationOrder": "Lowest"}},
		{"metadata": object{"name": "gamma6"}, "spec": object{"net": "fd00:3::", "mask": 64, "availableIPs": []string{span("fd00:3::10", n)}, "network": "gamma", "priority": -1}},
	} {
		p["apiVersion"], p["kind"] = v1.GroupVersion.String(), "BCSNetPool"
		p["spec"].(object)["hosts"] = all
		must(http.MethodPost, apis+"bcsnetpools", p)
	}
}

type object map[string]any

// span are so many addresses from a first one on.
func span(first string, n int) string {
	last := netip.MustParseAddr(first)
	for range n - 1 {
		last = last.Next()
	}
	return first + "-" + last.String()
}

func (f *fixture) micro() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// do asks the API server at once, as nobody in the cluster can; 503 while it is down.
func (f *fixture) do(method, path string, body any) (code int, answer map[string]any) {
	f.mu.Lock()
	down := time.Now().Before(f.down)
	f.mu.Unlock()
	if down {
		return http.StatusServiceUnavailable, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // an object is JSON
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(f.ctx), method, "http://api"+path,
		strings.NewReader(string(text)))
	if err != nil {
		panic(err) // paths are ours
	}
	if r.Header.Set("Content-Type", "application/json"); method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp := f.server.Serve(r, nil)
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&answer) // what is no JSON says nothing
	return resp.StatusCode, answer
}

func leaseOf(body []byte) (lease.Lease, error) {
	var o v1.BCSNetIP
	if err := json.Unmarshal(body, &o); err != nil {
		return lease.Lease{}, err
	}
	return store.Lease(&o, false)
}

// read is what the API server has of an address.
func (f *fixture) read(a netip.Addr) lease.Lease {
	_, answer := f.do(http.MethodGet, apis+"bcsnetips/"+ipaddr.ObjectName(a), nil)
	body, _ := json.Marshal(answer) // it was JSON
	l, err := leaseOf(body)
	if err != nil {
		return lease.Lease{Addr: a}
	}
	return l
}

// active are all leases that somebody holds.
func (f *fixture) active() (all []lease.Lease) {
	_, answer := f.do(http.MethodGet, apis+"bcsnetips?fieldSelector=status.status%3DActive", nil)
	body, _ := json.Marshal(answer) // it was JSON
	var list v1.BCSNetIPList
	if err := json.Unmarshal(body, &list); err != nil {
		f.verdict.Wrong("the leases cannot be read: %v", err)
	}
	for i := range list.Items {
		if l, err := store.Lease(&list.Items[i], false); err == nil {
			all = append(all, l)
		}
	}
	return all
}

// steady reports whether the API server can be reached.
func (f *fixture) steady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !time.Now().Before(f.down)
}

func (f *fixture) loading() bool { return f.load.Err() == nil }

// goesOn reports whether requests may wait for what others give up.
func (f *fixture) goesOn() bool { return f.loading() && !f.halted.Load() }

// pause lets virtual time pass, until the load ends at the latest.
func (f *fixture) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fault notes what was done to the system.
func (f *fixture) fault(what string) {
	f.verdict.Count("fault " + what)
	f.note("%s", what)
}

func (f *fixture) note(format string, args ...any) {
	_, _ = fmt.Fprintf(&f.journal, "%10.6f s: %s\n", f.history.Now().Seconds(), fmt.Sprintf(format, args...))
}
