package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

// foresees gives the pages a server that answers as Prometheus does: that pools lost some free addresses each hour of
// the last day. It returns what ends the server.
func (s *site) foresees(t *testing.T, hourly map[string]float64) (end func()) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var result []any
		for pool, lost := range hourly {
			var values [][2]any
			for i := 72; i >= 0; i-- {
				ago := time.Duration(i) * 20 * time.Minute
				values = append(values, [2]any{time.Now().Add(-ago).Unix(), fmt.Sprint(10 + lost*ago.Hours())})
			}
			result = append(result, map[string]any{"metric": map[string]string{"pool": pool}, "values": values})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": "success", "data": map[string]any{"resultType": "matrix", "result": result},
		})
	}))
	t.Cleanup(server.Close)
	s.server.Prometheus = &view.Prometheus{}
	cmd := &cobra.Command{}
	s.server.Prometheus.AddTo(cmd)
	if err := cmd.ParseFlags([]string{"--prometheus", server.URL}); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Prometheus.Validate(); err != nil {
		t.Fatal(err)
	}
	return server.Close
}

// TestTrend: the list of pools and the page of a pool say when it is full, by Prometheus, and can be sorted by that. If
// Prometheus does not answer they say so.
func TestTrend(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 53, 0), pool("gray", "10.2.0.0", 24, 253, 53, 0), pool("red", "10.3.0.0", 24, 253, 153, 0))
	end := s.foresees(t, map[string]float64{"blue": 20, "gray": 0, "red": 4})
	_, text := s.get(t, s.viewer, "/?sort=full")
	blue, red, gray := strings.Index(text, "/pool/blue"), strings.Index(text, "/pool/red"), strings.Index(text, "/pool/gray")
	if blue < 0 || blue > red || red > gray || !strings.Contains(text, "<td>10h</td>") || !strings.Contains(text, "<td>25h</td>") ||
		!strings.Contains(text, "<td>not in sight</td>") {
		t.Errorf("the list is\n%s", text)
	}
	if _, text := s.get(t, s.viewer, "/pool/blue"); !strings.Contains(text, "10h (by Prometheus)") {
		t.Errorf("the pool is\n%s", text)
	}
	end()
	s.foresees(t, nil)()
	for path, want := range map[string]string{"/": "the time until a pool is full is left out", "/pool/blue": "the start times of the leases are used instead"} {
		if status, text := s.get(t, s.viewer, path); status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "Full in") {
			t.Errorf("%s without Prometheus: %d\n%s", path, status, text)
		}
	}
}
