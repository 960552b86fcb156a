package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const eniIP = "tke.cloud.tencent.com/eni-ip"

// allPods are there, on no terms; err is what is said in place of the terms.
type allPods struct{ err error }

func (p *allPods) Of(context.Context, workload.Pod) (allocator.Constraints, error) {
	return allocator.Constraints{}, p.err
}

func (*allPods) Find(_ context.Context, namespace, name, uid string, _ netip.Addr) (workload.Pod, error) {
	return workload.Pod{Namespace: namespace, Name: name, UID: uid}, nil
}

func (*allPods) On(workload.Pod, []netip.Addr) bool { return true }

func (p *allPods) FindLive(ctx context.Context, namespace, name, uid string) (workload.Pod, error) {
	return p.Find(ctx, namespace, name, uid, netip.Addr{})
}

// judged is a fixture that places pods: so many addresses for node-0 and on, none for other-0 and on.
func judged(t *testing.T, addresses int, change ...func(*Options)) (*fixture, *allPods) {
	t.Helper()
	pods := &allPods{}
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.0.0.0", Mask: 16, Gateway: "10.0.0.1", Available: []string{fmt.Sprintf("10.0.1.0-10.0.1.%d", addresses-1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := func(name string) []netip.Addr {
		kind, number, _ := strings.Cut(name, "-")
		var n int
		if _, err := fmt.Sscan(number, &n); err != nil {
			return nil
		}
		return []netip.Addr{netip.AddrFrom4([4]byte{map[string]byte{"node": 192}[kind], 0, byte(n >> 8), byte(n)})}
	}
	f := newFixture(t, append(change, func(o *Options) {
		o.Scheduling = scheduling.New(o.Index, pods, pods, addr, time.Now, scheduling.Resources{eniIP})
	})...)
	f.Index.Pools.SetPool(ipam.Pool{
		Name: "a", Plan: plan, HostSubnets: ipam.Networks{netip.MustParsePrefix("192.0.0.0/16"): {}},
	})
	return f, pods
}

func askingPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{eniIP: resource.MustParse("1")}},
		}}},
	}
}

// post sends a question and reads the answer into one of the scheduler's own types.
func (f *fixture) post(t *testing.T, path string, question, answer any) int {
	t.Helper()
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, localRequest(http.MethodPost, path, bytes.NewReader(marshal(question))))
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
		t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	return w.Code
}

func byName(pod string, nodes ...string) extenderv1.ExtenderArgs {
	nodes = append([]string{}, nodes...)
	return extenderv1.ExtenderArgs{Pod: askingPod(pod), NodeNames: &nodes}
}

func TestExtender(t *testing.T) {
	var notYet error
	f, pods := judged(t, 2, func(o *Options) { o.Ready = func() error { return notYet } })
	var got extenderv1.ExtenderFilterResult
	f.post(t, "/v1/filter", byName("p", "node-1", "other-1", "ghost"), &got)
	want := extenderv1.ExtenderFilterResult{
		NodeNames: &[]string{"node-1"}, FailedNodes: map[string]string{
			"other-1": "FloatingIPPlugin:NoFIPConfigNode", "ghost": "FloatingIPPlugin:UnknowNode",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by names (-want +got):\n%s", diff)
	}
	whole := &corev1.NodeList{Items: []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "other-1"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "node-2", Labels: map[string]string{"a": "b"}}},
	}}
	got = extenderv1.ExtenderFilterResult{}
	f.post(t, "/v1/filter", extenderv1.ExtenderArgs{Pod: askingPod("p"), Nodes: whole}, &got)
	want = extenderv1.ExtenderFilterResult{
		Nodes:       &corev1.NodeList{Items: whole.Items[1:]},
		FailedNodes: map[string]string{"other-1": "FloatingIPPlugin:NoFIPConfigNode"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whole nodes (-want +got):\n%s", diff)
	}
	got = extenderv1.ExtenderFilterResult{}
	f.post(t, "/v1/filter", byName("p"), &got)
	if diff := cmp.Diff(extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: map[string]string{}},
		got); diff != "" {
		t.Errorf("no nodes (-want +got):\n%s", diff)
	}
	var scores extenderv1.HostPriorityList
	f.post(t, "/v1/priority", byName("p", "other-1", "node-1"), &scores)
	if diff := cmp.Diff(extenderv1.HostPriorityList{
		{Host: "other-1"}, {Host: "node-1", Score: extenderv1.MaxExtenderPriority},
	}, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}

	pods.err = errors.New("the API server is away")
	got = extenderv1.ExtenderFilterResult{}
	if status := f.post(t, "/v1/filter", byName("p", "node-1"), &got); status != http.StatusOK ||
		got.Error != "the API server is away" || got.NodeNames != nil {
		t.Errorf("%d %+v", status, got)
	}
	var e wire.Envelope
	if status := f.post(t, "/v1/priority", byName("p", "node-1"), &e); status != http.StatusServiceUnavailable ||
		e.Message != "the API server is away" {
		t.Errorf("%d %+v", status, e)
	}
	notYet = errors.New("the list of Pods has not come")
	if status := f.post(t, "/v1/filter", byName("p", "node-1"), &e); status != http.StatusServiceUnavailable {
		t.Errorf("%d %+v", status, e)
	}
}

// What is no question is refused, and says why.
func TestExtenderBadInput(t *testing.T) {
	f, _ := judged(t, 2)
	for body, want := range map[string]string{
		"":                                     "the body is empty; a JSON object is expected",
		"{":                                    "the body is not JSON",
		"null":                                 "the body must be a JSON object, not null",
		"[]":                                   "the body must be a JSON object, not a JSON array",
		"{}":                                   "the question names no Pod",
		`{"Pod":{}}`:                           "the question has neither Nodes nor NodeNames",
		`{"Pod":7}`:                            "field Pod must be an object, not a JSON number",
		`{"Pod":{},"NodeNames":[1]}`:           "field NodeNames must be a string, not a JSON number",
		`{"Pod":{"spec":[]},"NodeNames":[1]}`:  "field Pod.spec must be an object, not a JSON array",
		`{"Pod":{},"Nodes":{},"NodeNames":[]}`: "the question has both Nodes and NodeNames",
		`{"Pod":{},"Nodes":{"items":[{},1]}}`:  "Nodes.items[1] is not a node: the body must be a JSON object, not a JSON number",
		`{"Pod":{},"Nodes":{"items":[{"metadata":"x"}]}}`:                                         "Nodes.items[0] is not a node: field metadata must be an object, not a JSON string",
		`{"Pod":{"spec":{"containers":[{"resources":{"requests":{"a/b":"x"}}}]}},"NodeNames":[]}`: "the body cannot be read: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
	} {
		for path := range f.extenderRoutes() {
			status, e := f.do(t, http.MethodPost, path, body)
			if status != http.StatusBadRequest || e.Message != want || e.Result || e.Code != 1 {
				t.Errorf("POST %s %s: %d %+v, want %s", path, body, status, e, want)
			}
		}
	}
	for path := range f.extenderRoutes() {
		if status, e := f.do(t, http.MethodGet, path, ""); status != http.StatusMethodNotAllowed ||
			e.Message != "method GET is not allowed here: use POST" {
			t.Errorf("GET %s: %d %+v", path, status, e)
		}
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, localRequest(http.MethodPost, "/v1/filter", &endless{left: maxQuestion + 1}))
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("an endless body: %d %s", w.Code, w.Body)
	}
}

// endless is a body of blanks.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, errors.New("read on")
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	e.left -= n
	return n, nil
}

// TestExtenderAtOnce: of many pods that are asked about at once, as by several schedulers, no more are let through
// than there are addresses, also when nodes are sent whole.
func TestExtenderAtOnce(t *testing.T) {
	f, _ := judged(t, 5)
	nodes := &corev1.NodeList{}
	for i := range 50 {
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("node-", i), Annotations: map[string]string{"filler": strings.Repeat("x", 1000)},
		}})
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	through := 0
	for i := range 40 {
		all.Go(func() {
			var got extenderv1.ExtenderFilterResult
			f.post(t, "/v1/filter", extenderv1.ExtenderArgs{Pod: askingPod(fmt.Sprint("p", i)), Nodes: nodes}, &got)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.Nodes != nil && len(got.Nodes.Items) == 50:
				through++
			case len(got.FailedNodes) != 50:
				t.Errorf("pod %d: %d fail, %s", i, len(got.FailedNodes), got.Error)
			}
		})
	}
	all.Wait()
	if through != 5 {
		t.Errorf("%d pods were let through, there are 5 addresses", through)
	}
}

// TestExtenderForwards: a follower asks the leader by names, and gives back whole nodes.
func TestExtenderForwards(t *testing.T) {
	leader, _ := judged(t, 1)
	asked := []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, fmt.Sprint(r.URL.Path, " ", r.ContentLength < 2000))
		leader.handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	self := replica.New("here", server.URL)
	leader.Peers.(*fakePeers).leading, leader.Peers.(*fakePeers).self = true, self
	follower, _ := judged(t, 1)
	peers := follower.Peers.(*fakePeers)
	peers.self, peers.leader = replica.New("here", ""), self
	peers.secrets = map[string][]byte{self.ID(): []byte("shared")}
	leader.Peers.(*fakePeers).secrets = map[string][]byte{peers.self.ID(): []byte("shared")}
	defer follower.Forwarder.transport.CloseIdleConnections()
	nodes := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{
		Name: "node-1", Annotations: map[string]string{"filler": strings.Repeat("x", 4000)},
	}}}}
	var first, second extenderv1.ExtenderFilterResult
	follower.post(t, "/v1/filter", extenderv1.ExtenderArgs{Pod: askingPod("first"), Nodes: nodes}, &first)
	leader.post(t, "/v1/filter", byName("second", "node-1"), &second)
	if diff := cmp.Diff(nodes, first.Nodes); diff != "" || len(*second.NodeNames) > 0 {
		t.Errorf("the leader does not know of the first pod: %+v, %+v", first, second)
	}
	var scores extenderv1.HostPriorityList
	follower.post(t, "/v1/priority", extenderv1.ExtenderArgs{Pod: askingPod("first"), Nodes: nodes}, &scores)
	if diff := cmp.Diff([]string{"/v1/filter true", "/v1/priority true"}, asked); diff != "" || len(scores) != 1 ||
		scores[0].Score != 10 {
		t.Errorf("scores %v; asked (-want +got):\n%s", scores, diff)
	}
	server.Close() // the follower answers by itself
	if follower.post(t, "/v1/filter", byName("third", "node-1"), &second); second.NodeNames == nil ||
		len(*second.NodeNames) != 1 {
		t.Errorf("%+v", second)
	}
}

// BenchmarkExtender is a question about 5,000 nodes.
func BenchmarkExtender(b *testing.B) {
	t := &testing.T{}
	s, _ := judged(t, 250)
	names, nodes := []string{}, &corev1.NodeList{}
	for i := range 5000 {
		names = append(names, fmt.Sprint("node-", i))
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: names[i], Annotations: map[string]string{"filler": strings.Repeat("x", 12000)},
		}})
	}
	for name, q := range map[string]extenderv1.ExtenderArgs{
		"names": {Pod: askingPod("p"), NodeNames: &names}, "whole": {Pod: askingPod("p"), Nodes: nodes},
	} {
		body := marshal(q)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, localRequest(http.MethodPost, "/v1/filter", bytes.NewReader(body)))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
