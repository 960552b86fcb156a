package main

import (
	"bufio"
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
