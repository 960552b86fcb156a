package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// discarded is an answer that nobody keeps.
type discarded struct{ status int }

func (*discarded) Header() http.Header             { return http.Header{} }
func (d *discarded) WriteHeader(status int)        { d.status = status }
func (*discarded) Write(b []byte) (n int, _ error) { return len(b), nil }

// TestCostOfQuestions: what a question counts for is at least what answering it allocates.
func TestCostOfQuestions(t *testing.T) {
	b, _ := judged(t, 250)
	names, nodes := []string{}, &corev1.NodeList{}
	for i := range 2000 {
		names = append(names, fmt.Sprint("node-", i))
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[i], Annotations: map[string]string{"filler": strings.Repeat("x", 10000)}}})
	}
	far := make([]string, 20000) // each of them is refused with a text
	for i := range far {
		far[i] = fmt.Sprint("other-", i)
	}
	for name, tc := range map[string]struct {
		q    extenderv1.ExtenderArgs
		cost int
	}{
		"by names":        {extenderv1.ExtenderArgs{Pod: askingPod("p"), NodeNames: &names}, nameCost},
		"names that fail": {extenderv1.ExtenderArgs{Pod: askingPod("p"), NodeNames: &far}, nameCost},
		"whole nodes":     {extenderv1.ExtenderArgs{Pod: askingPod("p"), Nodes: nodes}, wholeCost},
	} {
		body := marshal(tc.q)
		var before, after runtime.MemStats
		took, counted := uint64(0), uint64(tc.cost*len(body))
		for n := 0; n < 8 && (n == 0 || took > counted); n++ { // buffers are used again, but for the first time, and with -race at random
			r := httptest.NewRequest(http.MethodPost, "/v1/filter", bytes.NewReader(body))
			runtime.ReadMemStats(&before)
			b.handler.ServeHTTP(&discarded{}, r)
			runtime.ReadMemStats(&after)
			took = after.TotalAlloc - before.TotalAlloc
		}
		t.Logf("%s: %d bytes, %.1f for each", name, len(body), float64(took)/float64(len(body)))
		if small := len(body) <= smallQuestion; small != (tc.cost == nameCost) {
			t.Errorf("%s: a question of %d bytes counts for one of the other kind", name, len(body))
		}
		if took > counted {
			t.Errorf("%s: a question of %d bytes allocates %d and counts for %d", name, len(body), took, counted)
		}
	}
}

// TestSmallQuestionsPass: while large questions fill their share and more of them wait, small ones are answered; what
// waits too long is told so, and the room comes back.
func TestSmallQuestionsPass(t *testing.T) {
	b, _ := judged(t, 250)
	body := marshal(byName("large", "node-1"))
	body = append(body, bytes.Repeat([]byte(" "), maxQuestion-len(body))...)
	reader, writer := io.Pipe()
	answered := make(chan int, 2)
	send := func(ctx context.Context, from io.Reader) {
		r := httptest.NewRequest(http.MethodPost, "/v1/filter", from).WithContext(ctx)
		r.ContentLength = maxQuestion
		w := &discarded{status: http.StatusOK}
		b.handler.ServeHTTP(w, r)
		answered <- w.status
	}
	go send(t.Context(), reader)
	if _, err := writer.Write(body[:1]); err != nil { // it is being read
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	go send(ctx, bytes.NewReader(body))
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/filter", bytes.NewReader(marshal(byName("small", "node-1")))).WithContext(soon))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"node-1"`) {
		t.Errorf("a small question: %d %s", w.Code, w.Body)
	}
	giveUp()
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("the large one that waits: %d", status)
	}
	go func() {
		_, _ = writer.Write(body[1:])
		_ = writer.Close()
	}()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the first large one: %d", status)
	}
	if !b.questions.large.TryAcquire(maxLarge) || !b.questions.small.TryAcquire(maxSmall) {
		t.Error("the room has not come back")
	}
}
