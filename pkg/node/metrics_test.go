package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
)

// TestCallsAreCounted has lines of each kind in calls.log, and what becomes of them.
func TestCallsAreCounted(t *testing.T) {
	o := optionsIn(t.TempDir())
	m := newMetrics(o, &tokens{options: o})
	dir := runstate.Dir(o.RunDir)
	for _, c := range []runstate.Call{
		{Command: "ADD", Outcome: runstate.OK, Milliseconds: 7}, {Command: "ADD", Outcome: runstate.Refused, Reason: "PoolExhausted"},
		{Command: "ADD", Outcome: runstate.Refused, Reason: "OfALaterRelease"}, {Command: "DEL", Outcome: runstate.Dropped},
		{Command: "RESET", Outcome: "lost in time"}, {Command: "DEL", Outcome: runstate.Recorded, Milliseconds: 5000},
	} {
		if err := dir.Log(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := f.GetName() + " " + strings.Join(labels, ",")
			if f.GetName() == "bcsnet_node_calls_total" {
				got[key] = metric.GetCounter().GetValue()
			} else if f.GetName() == "bcsnet_node_call_duration_seconds" {
				got[key] = metric.GetHistogram().GetSampleSum()
			}
		}
	}
	want := map[string]float64{
		"bcsnet_node_calls_total ADD,ok,": 1, "bcsnet_node_calls_total ADD,refused,PoolExhausted": 1,
		"bcsnet_node_calls_total ADD,refused,other": 1, "bcsnet_node_calls_total DEL,dropped,": 1,
		"bcsnet_node_calls_total other,other,": 1, "bcsnet_node_calls_total DEL,recorded,": 1,
		"bcsnet_node_call_duration_seconds ADD": 0.007, "bcsnet_node_call_duration_seconds DEL": 5,
		"bcsnet_node_call_duration_seconds other": 0,
	}
	text := func(v any) string { return string(must(json.MarshalIndent(v, "", " "))) }
	if text(want) != text(got) {
		t.Errorf("want %s\ngot %s", text(want), text(got))
	}
}
