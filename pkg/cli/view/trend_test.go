package view

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// noon is when the tests look.
func noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func TestTrendOf(t *testing.T) {
	for want, tc := range map[string]struct {
		free  int64
		rates []float64
	}{
		"10h":                 {100, []float64{10, 10}},
		"10h to 4d4h":         {100, []float64{5, 10, 1}},
		"10h at the soonest":  {100, []float64{10, 0}},
		"4d4h at the soonest": {100, []float64{-3, 1}},
		"20d at the soonest":  {480, []float64{1, 0.01}},
		"not in sight":        {100, []float64{0, -5, 0.01}},
		"1s":                  {1, []float64{math.MaxFloat64}},
	} {
		if got := trendOf(tc.free, tc.rates, "").Time(); got != want {
			t.Errorf("%d free at %v: %q, want %q", tc.free, tc.rates, got, want)
		}
	}
}

// TestTurnover: pods that are replaced are no growth, and no period counts that is longer than the pool exists.
func TestTurnover(t *testing.T) {
	var c turnover
	for i := range 12 {
		l := lease.Lease{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), State: lease.Active}
		l.Updated = noon().Add(-time.Duration(i) * 2 * time.Hour)
		if i%3 == 2 {
			l.State = lease.Available
		}
		c.count(l, noon())
	}
	c.count(lease.Lease{}, noon()) // nobody ever held it
	if c.begun != [3]int64{1, 2, 8} || c.ended != [3]int64{0, 1, 4} {
		t.Fatalf("%+v", c)
	}
	for age, want := range map[time.Duration][]float64{
		time.Minute: nil, 2 * time.Hour: {1, 1}, 24 * time.Hour: {1, 1, 2. / 6, 1. / 6, 8. / 24, 4. / 24},
	} {
		if got := c.rates(age); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", age, got, want)
		}
	}
	rollout := turnover{begun: [3]int64{50, 50, 50}, ended: [3]int64{50, 50, 50}}
	if got := trendOf(10, rollout.rates(48*time.Hour), "").Time(); got != "not in sight" {
		t.Errorf("a rollout: %s", got)
	}
}

// answers is a server that answers as Prometheus does.
type answers struct {
	*httptest.Server
	asked  atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request)
}

func newAnswers(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *answers {
	t.Helper()
	a := &answers{answer: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asked.Add(1)
		a.answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// given returns what flags name.
func given(t *testing.T, args ...string) (*Prometheus, error) {
	t.Helper()
	p, cmd := &Prometheus{}, &cobra.Command{}
	p.AddTo(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return p, p.Validate()
}

// series answers with the free addresses of pool blue every 20 minutes: the newest first.
func series(free ...any) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") != freeAddresses || r.FormValue("step") != "1200" || r.FormValue("timeout") == "" {
			http.Error(w, fmt.Sprint(r.Form), http.StatusTeapot)
			return
		}
		var values [][2]any
		for i, v := range slices.Backward(free) {
			values = append(values, [2]any{noon().Add(-time.Duration(i) * prometheusStep).Unix(), fmt.Sprint(v)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{
			"resultType": "matrix", "result": []any{map[string]any{"metric": map[string]string{"pool": "blue"}, "values": values}},
		}})
	}
}

// line returns n counts that fall by some addresses an hour to a last one, the newest first.
func line(n int, last, hourly float64) (all []any) {
	for i := range n {
		all = append(all, last+hourly*float64(i)/3)
	}
	return all
}

// blue is a pool with 100 free addresses, of which one began each of the last four hours.
func blue(age time.Duration) *Pool {
	o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "blue", CreationTimestamp: metav1.NewTime(noon().Add(-age))}}
	o.Generation = 1
	o.Status = v1.BCSNetPoolStatus{ObservedGeneration: 1, Status: v1.PoolNormal, Capacity: 104, Active: 4, Available: 100}
	d := &Pool{Pool: resource.Pool{BCSNetPool: o}, now: noon()}
	for i := range 4 {
		d.turnover.count(lease.Lease{State: lease.Active, Updated: noon().Add(-time.Duration(i) * time.Hour)}, noon())
	}
	return d
}

func quiet() (*app.App, *strings.Builder) {
	var said strings.Builder
	a := app.New("bcsnetctl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &said})
	a.Now = noon
	return a, &said
}

// TestForesee: Prometheus says when a pool is full. If it does not, the leases do, and the reason is given in words.
func TestForesee(t *testing.T) {
	const leases = "4d4h to 25d (by when the present leases began)"
	for name, tc := range map[string]struct {
		answer     func(http.ResponseWriter, *http.Request)
		want, said string
	}{
		"a day": {answer: series(line(73, 100, 10)...), want: "10h (by Prometheus)"},
		"an hour faster than before": {
			answer: series(append(line(3, 100, 50), line(70, 150, 5)...)...), want: "120m to 18h (by Prometheus)",
		},
		"less":         {answer: series(line(73, 100, -1)...), want: "not in sight (by Prometheus)"},
		"two hours":    {answer: series(line(7, 100, 10)...), want: "10h (by Prometheus)"},
		"half an hour": {series(line(2, 100, 10)...), leases, "has no hour of bcsnet_pool_addresses for pool blue"},
		"no number": {
			answer: series(append([]any{"NaN", "+Inf"}, line(71, 100, 10)...)...), want: "10h (by Prometheus)",
		},
		"no numbers": {series("NaN", "NaN", "NaN", "NaN"), leases, "has no hour"},
		"nothing": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
		}, leases, "it may not scrape the controller"},
		"a number": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`)
		}, leases, "does not answer with series"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<h1>no\x1b[31m</h1>", http.StatusServiceUnavailable)
		}, leases, "server error: 503"},
		"denied": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}, leases, "401"},
		"led away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, leases, "302"},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":%q}`, "too many samples "+strings.Repeat("x", 1<<20))
		}, leases, "too many samples"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, leases, "bad_response"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			for range prometheusSize>>20 + 1 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, leases, "more than 16 MiB"},
		"slow": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the client goes
			<-r.Context().Done()
		}, leases, "it did not answer within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newAnswers(t, tc.answer)
			p, err := given(t, "--prometheus", server.URL)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				a, said := quiet()
				d := blue(48 * time.Hour)
				d.Foresee(t.Context(), a, p)
				if d.Trend == nil || d.Trend.String() != tc.want {
					t.Errorf("%v, want %q", d.Trend, tc.want)
				}
				if text := said.String(); (text == "") != (tc.said == "") || !strings.Contains(text, tc.said) || len(text) > 500 ||
					strings.Contains(text, "\x1b") {
					t.Errorf("it says %q, want %q", text, tc.said)
				}
			}
			if n := server.asked.Load(); n != 1 {
				t.Errorf("it was asked %d times within a minute", n)
			}
		})
	}
}

// TestForeseeWithout: without Prometheus the leases say when a pool is full, if it is old enough.
func TestForeseeWithout(t *testing.T) {
	a, said := quiet()
	for age, want := range map[time.Duration]string{
		time.Minute: "", 90 * time.Minute: "4d4h (by when the present leases began)",
		48 * time.Hour: "4d4h to 25d (by when the present leases began)",
	} {
		d := blue(age)
		d.Foresee(t.Context(), a, nil)
		if d.Trend == nil && want != "" || d.Trend != nil && d.Trend.String() != want {
			t.Errorf("after %s: %v, want %q", age, d.Trend, want)
		}
	}
	full := blue(48 * time.Hour)
	full.Status.Available = 0
	if full.Foresee(t.Context(), a, nil); full.Trend != nil {
		t.Errorf("a full pool: %v", full.Trend)
	}
	if said.Len() > 0 {
		t.Errorf("it says %q", said)
	}
}

// TestPrometheusFlags: a token goes to its server alone, over https, and files that are missing are reported.
func TestPrometheusFlags(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got atomic.Value
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		series(line(73, 100, 10)...)(w, r)
	}))
	defer secure.Close()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, certificate(secure), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := given(t, "--prometheus", secure.URL+"/", "--prometheus-token-file", token, "--prometheus-ca-file", ca)
	if err != nil {
		t.Fatal(err)
	}
	if rates, err := p.rates(t.Context(), "blue", noon()); err != nil || len(rates) != 3 || got.Load() != "Bearer secret" {
		t.Errorf("%v %v, by %q", rates, err, got.Load())
	}
	if p, err = given(t, "--prometheus", secure.URL); err != nil {
		t.Fatal(err)
	}
	if _, err := p.rates(t.Context(), "blue", noon()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown CA: %v", err)
	}
	for _, args := range [][]string{
		{"--prometheus", "prometheus:9090"}, {"--prometheus", "http://user:secret@prometheus"},
		{"--prometheus", "http://prometheus", "--prometheus-token-file", token}, {"--prometheus-token-file", token},
		{"--prometheus", "https://prometheus", "--prometheus-token-file", token + "x"},
		{"--prometheus", "https://prometheus", "--prometheus-ca-file", token},
	} {
		if _, err := given(t, args...); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if p, err := given(t); err != nil || p.Given() {
		t.Errorf("without flags: %v", err)
	}
}

// TestTrends: a list of pools has the trends of those that Prometheus knows, with one question.
func TestTrends(t *testing.T) {
	server := newAnswers(t, series(line(73, 100, 10)...))
	p, err := given(t, "--prometheus", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, said := quiet()
	other := blue(0)
	other.Name = "other"
	all := Trends(t.Context(), a, p, []resource.Pool{blue(0).Pool, other.Pool})
	if len(all) != 1 || all["blue"].Time() != "10h" || said.Len() > 0 {
		t.Errorf("%v, and it says %q", all, said)
	}
	server.Close()
	if p, err = given(t, "--prometheus", server.URL); err != nil {
		t.Fatal(err)
	}
	if all := Trends(t.Context(), a, p, nil); all != nil || !strings.Contains(said.String(), "refused; the time until") {
		t.Errorf("%v, and it says %q", all, said)
	}
}

// certificate returns the certificate of a server in PEM.
func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
