package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/bcsnet/bcsnet/pkg/allocator"
)

// discarded is an answer that nobody keeps.
type discarded struct{ status int }

func (*discarded) Header() http.Header             { return http.Header{} }
func (d *discarded) WriteHeader(status int)        { d.status = status }
func (*discarded) Write(b []byte) (n int, _ error) { return len(b), nil }

// takesLong leaves a test to the long form: questions of 64 MiB take seconds, with the race detector ten times as long.
func takesLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test-all")
	}
}

// allocates answers a question and returns the bytes that this allocates, buffers of the body included. It asks up to
// eight times, as memory that is used again counts the first time alone, and with -race at random.
func (f *fixture) allocates(body []byte, enough uint64) (took uint64, status int) {
	var before, after runtime.MemStats
	for n := 0; n < 8 && (n == 0 || took > enough); n++ {
		r := localRequest(http.MethodPost, "/v1/filter", bytes.NewReader(body))
		w := &discarded{status: http.StatusOK}
		runtime.ReadMemStats(&before)
		f.handler.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		took, status = after.TotalAlloc-before.TotalAlloc, w.status
	}
	return took, status
}

// counted returns the bytes that a question counts for: to decide it, and for its buffers.
func counted(body []byte) uint64 {
	n, _ := cost(body)
	return uint64(n) + uint64(3*len(body)) + 2*firstBuffer
}

// TestCostOfQuestions: what a question counts for is at least what answering it allocates.
func TestCostOfQuestions(t *testing.T) {
	takesLong(t)
	f, _ := judged(t, 250)
	names, nodes := []string{}, &corev1.NodeList{}
	for i := range 2000 {
		names = append(names, fmt.Sprint("node-", i))
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: names[i], Annotations: map[string]string{"filler": strings.Repeat("x", 10000)},
		}})
	}
	far := make([]string, maxAsked) // each of them is refused with a text
	for i := range far {
		far[i] = fmt.Sprint("other-", i, strings.Repeat("x", 20))
	}
	few := far[:20000]
	for name, tc := range map[string]struct {
		q     extenderv1.ExtenderArgs
		small bool
	}{
		"by names":             {extenderv1.ExtenderArgs{Pod: askingPod("p"), NodeNames: &names}, true},
		"names that fail":      {extenderv1.ExtenderArgs{Pod: askingPod("p"), NodeNames: &few}, true},
		"many names that fail": {extenderv1.ExtenderArgs{Pod: askingPod("p"), NodeNames: &far}, false},
		"whole nodes":          {extenderv1.ExtenderArgs{Pod: askingPod("p"), Nodes: nodes}, false},
	} {
		body := marshal(tc.q)
		if small := len(body) <= smallQuestion; small != tc.small {
			t.Errorf("%s: a question of %d bytes counts for one of the other kind", name, len(body))
		}
		counted := counted(body)
		took, status := f.allocates(body, counted)
		t.Logf("%s: %d bytes, %.1f for each", name, len(body), float64(took)/float64(len(body)))
		if took > counted || status != http.StatusOK {
			t.Errorf("%s: %d: a question of %d bytes allocates %d and counts for %d", name, status, len(body), took,
				counted)
		}
	}
}

// TestHostileQuestions: what is short in JSON and long in memory is passed over, or refused before it is read.
func TestHostileQuestions(t *testing.T) {
	takesLong(t)
	f, _ := judged(t, 250)
	times := func(part string, bytes int) string {
		return strings.TrimSuffix(strings.Repeat(part+",", bytes/(len(part)+1)), ",")
	}
	keys := func(value string, n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "\"%d\":%s,", i, value)
		}
		return strings.TrimSuffix(out.String(), ",")
	}
	const mb = 1 << 20
	for name, body := range map[string]string{
		"containers":           `{"NodeNames":[],"Pod":{"spec":{"containers":[` + times("{}", mb) + `]}}}`,
		"volumes":              `{"NodeNames":[],"Pod":{"spec":{"volumes":[` + times("{}", mb) + `]}}}`,
		"containers, 4 MB":     `{"NodeNames":[],"Pod":{"spec":{"containers":[` + times("{}", 4*mb) + `]}}}`,
		"within the bounds":    `{"NodeNames":[],"Pod":{"spec":{"containers":[` + times("{}", 3*maxPodParts) + `]}}}`,
		"owners":               `{"NodeNames":[],"Pod":{"metadata":{"ownerReferences":[` + times("{}", 3*maxPodParts) + `]}}}`,
		"who changed what":     `{"NodeNames":[],"Pod":{"metadata":{"managedFields":[` + times("{}", 2*mb) + `]}}}`,
		"annotations":          `{"NodeNames":[],"Pod":{"metadata":{"annotations":{` + keys(`""`, maxPodParts-1) + `}}}}`,
		"requests":             `{"NodeNames":[],"Pod":{"spec":{"resources":{"requests":{` + keys(`"1"`, maxPodParts-1) + `}}}}}`,
		"a deep one":           `{"NodeNames":[],"Pod":{"spec":` + strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat("}", 9000) + `}}`,
		"names":                `{"Pod":{},"NodeNames":[` + times(`""`, 4*mb) + `]}`,
		"nodes":                `{"Pod":{},"Nodes":{"items":[` + times(`{}`, 4*mb) + `]}}`,
		"nodes of many fields": `{"Pod":{},"Nodes":{"items":[{"metadata":{"managedFields":[` + times(`{}`, 4*mb) + `]}}]}}`,
	} {
		enough := counted([]byte(body))
		took, status := f.allocates([]byte(body), enough)
		t.Logf("%s: %d: %d bytes allocate %.1f MB and count for %.1f", name, status, len(body), float64(took)/mb,
			float64(enough)/mb)
		if took > enough || status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("%s: %d: a question of %d bytes allocates %d", name, status, len(body), took)
		}
	}
}

// TestSmallQuestionsPass: whoever announces much and sends a part of it keeps nobody waiting, neither with large
// questions nor with such as pass for small ones. What he has sent is bounded, and the room comes back.
func TestSmallQuestionsPass(t *testing.T) {
	f, _ := judged(t, 250)
	answered := make(chan int)
	var writers []*io.PipeWriter
	began := 0
	for _, announced := range []int64{smallArrival, smallQuestion, maxQuestion} {
		for range 12 {
			reader, writer := io.Pipe()
			writers = append(writers, writer)
			r := localRequest(http.MethodPost, "/v1/filter", reader)
			r.ContentLength = announced
			go func() {
				w := &discarded{status: http.StatusOK}
				f.handler.ServeHTTP(w, r)
				answered <- w.status
			}()
			// all of it has been read
			if _, err := writer.Write(bytes.Repeat([]byte(" "), smallArrival-1)); err != nil {
				t.Fatal(err)
			}
			began++
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, localRequest(http.MethodPost, "/v1/filter",
			bytes.NewReader(marshal(byName("small", "node-1")))).WithContext(soon))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"node-1"`) {
			t.Errorf("a small question: %d %s", w.Code, w.Body)
		}
	}
	for _, w := range writers {
		_ = w.Close()
	}
	for range began {
		if status := <-answered; status != http.StatusBadRequest {
			t.Errorf("one that ends early: %d", status)
		}
	}
	f.roomIsBack(t)
}

func (f *fixture) roomIsBack(t *testing.T) {
	t.Helper()
	a, d := f.limits.memory.arriving, f.limits.memory.deciding
	if !a.small.TryAcquire(arrivingSmall) || !a.large.TryAcquire(arrivingLarge) || !d.small.TryAcquire(maxSmall) ||
		!d.large.TryAcquire(maxLarge) {
		t.Error("the room has not come back")
	}
}

// TestLargeQuestions: the largest question has room, a second one at the same time is told to come again, and one that
// announces more than that is refused unread.
func TestLargeQuestions(t *testing.T) {
	takesLong(t)
	f, _ := judged(t, 250)
	body := marshal(byName("large", "node-1"))
	body = append(body, bytes.Repeat([]byte(" "), maxQuestion-len(body))...)
	reader, writer := io.Pipe()
	answered := make(chan int, 1)
	send := func(from io.Reader, announced int64) int {
		r := localRequest(http.MethodPost, "/v1/filter", from)
		r.ContentLength = announced
		w := &discarded{status: http.StatusOK}
		f.handler.ServeHTTP(w, r)
		return w.status
	}
	began := time.Now()
	go func() { answered <- send(reader, maxQuestion) }()
	if _, err := writer.Write(body[:maxQuestion-1]); err != nil { // what it has takes its last buffer
		t.Fatal(err)
	}
	if status := send(bytes.NewReader(body), maxQuestion); status != http.StatusServiceUnavailable {
		t.Errorf("a second large one: %d", status)
	}
	if status := send(reader, maxQuestion+1); status != http.StatusRequestEntityTooLarge {
		t.Errorf("one that is too large: %d", status)
	}
	go func() {
		_, _ = writer.Write(body[maxQuestion-1:])
		_ = writer.Close()
	}()
	status := <-answered
	// With the race detector on a busy machine its time may be over before it is read.
	late := status == http.StatusServiceUnavailable && time.Since(began) >= allocator.MaxRequestTime
	if status != http.StatusOK && !late {
		t.Errorf("the first large one: %d", status)
	}
	f.roomIsBack(t)
}

// TestPatience: a sender that says nothing is let go of after two seconds, whatever it has announced, and a slow one
// when it has fallen behind: a question has all its time only after some hundred thousand bytes.
func TestPatience(t *testing.T) {
	t.Parallel()
	for arrived, want := range map[int]time.Duration{
		0: 2 * time.Second, 64 << 10: 3 * time.Second, 640 << 10: 12 * time.Second, 1 << 20: readTime,
		maxQuestion: readTime,
	} {
		if got := patience(arrived); got != want {
			t.Errorf("%d bytes have come: %s, want %s", arrived, got, want)
		}
	}
}

// TestSlowQuestion: a sender that is too slow is told so long before the time for a body is over, and its connection
// ends.
func TestSlowQuestion(t *testing.T) {
	t.Parallel()
	f, _ := judged(t, 250)
	server := httptest.NewUnstartedServer(f.handler)
	server.Config.ReadTimeout = time.Hour
	server.Start()
	defer server.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{",
		smallQuestion); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if text := string(all); err != nil || !strings.HasPrefix(text, "HTTP/1.1 408 ") ||
		!strings.Contains(text, "the body comes too slowly: 1 bytes in ") {
		t.Errorf("%v: %s", err, text)
	}
	f.roomIsBack(t)
}
