package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMerged(t *testing.T) {
	const old = "### A\n\n| 1 |\n\n### B\n\n| 2 |\n"
	for name, c := range map[string]struct{ old, fresh, want string }{
		"nothing there":       {"", old, old},
		"one in place":        {"2 cores.\n\n" + old, "### B\n\n| 3 |\n", "### A\n\n| 1 |\n\n### B\n\n| 3 |\n"},
		"another one":         {old, "### C\n\n| 3 |\n", old + "\n### C\n\n| 3 |\n"},
		"the title of a part": {old, "### A b\n\n| 3 |\n", old + "\n### A b\n\n| 3 |\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := merged(c.old, c.fresh); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	if err := (settings{only: "floors,large"}).check(); err != nil {
		t.Error(err)
	}
	if (settings{only: "floors,lrage"}).check() == nil {
		t.Error("a part that there is not was taken")
	}
	if o := (settings{only: "floors,large"}); !o.wants("large") || o.wants("start") || !(settings{}).wants("start") {
		t.Error("wants the wrong parts")
	}
}

// TestSandboxTimes has a sandbox that was made at the second attempt, one of which the end is missing, and other lines.
func TestSandboxTimes(t *testing.T) {
	const log = `time="2026-01-02T10:00:00.5Z" level=info msg="RunPodSandbox for name:\"a-1\" uid:\"u\" namespace:\"default\""
time="2026-01-02T10:00:00.6Z" level=error msg="RunPodSandbox for name:\"a-1\" uid:\"u\" namespace:\"default\" failed, error" error="x"
time="2026-01-02T10:00:01Z" level=info msg="RunPodSandbox for name:\"b-1\" uid:\"u\" namespace:\"default\""
time="2026-01-02T10:00:02Z" level=info msg="RunPodSandbox for name:\"a-1\" uid:\"u\" namespace:\"default\" attempt:1"
time="2026-01-02T10:00:03Z" level=info msg="RunPodSandbox for name:\"a-1\" uid:\"u\" namespace:\"default\" attempt:1 returns sandbox id \"58\""
time="2026-01-02T10:00:04Z" level=info msg="StopPodSandbox for \"58\""
`
	got, err := sandboxTimes(bufio.NewScanner(strings.NewReader(log)))
	want := map[string]time.Duration{"a-1": 2500 * time.Millisecond}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestMatch has a match go through the text in which the process in the namespace prints it.
func TestMatch(t *testing.T) {
	const ms = time.Millisecond
	text, err := json.Marshal([]match{
		{AtOnce: 1, Turns: map[string][]turnTimes{hostLocal: {{Wall: 10 * ms, CPU: 4 * ms}}, ours: {{Wall: 20 * ms, CPU: 8 * ms}}}},
		{Below: bridge, AtOnce: 2, Turns: map[string][]turnTimes{
			hostLocal: {{Wall: 10 * ms, CPU: 4 * ms}, {Wall: 10 * ms, CPU: 4 * ms}},
			ours:      {{Wall: 14 * ms, CPU: 6 * ms}, {Wall: 14 * ms, CPU: 6 * ms}}, whereabouts: {{Wall: 90 * ms, CPU: 20 * ms}},
		}},
	})
	var all []match
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	var r report
	for _, m := range all {
		r.match(m)
	}
	want := []string{
		"| directly | 1 | host-local | 10.0 ms | 4.0 ms | 1.00 (1.00 to 1.00) |  |  | 1.00 (1.00 to 1.00) |  |  |",
		"| directly | 1 | bcsnet-ipam | 20.0 ms | 8.0 ms | 2.00 (2.00 to 2.00) |  |  | 2.00 (2.00 to 2.00) |  |  |",
		"| by bridge | 2 | host-local | 10.0 ms | 2.0 ms | 1.00 (1.00 to 1.00) |  |  | 1.00 (1.00 to 1.00) |  |  |",
		"| by bridge | 2 | bcsnet-ipam | 14.0 ms | 3.0 ms | 1.40 (1.40 to 1.40) | ≤ 1.50 | yes | 1.50 (1.50 to 1.50) | ≤ 1.25 | no |",
		"| by bridge | 2 | whereabouts | 90.0 ms | 10.0 ms | 9.00 (9.00 to 9.00) |  |  | 5.00 (5.00 to 5.00) |  |  |",
	}
	if diff := cmp.Diff(want, r.rivals); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := strings.Count(rivalsHead, "|"), strings.Count(r.rivals[0], "|"); got != want {
		t.Errorf("the head has %d bars, a row %d", got, want)
	}
}
