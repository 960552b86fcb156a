package sim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tally sums what rounds did.
type tally struct {
	counts             map[string]int
	rounds, operations int
	began              time.Time
}

func (s *tally) add(r result) {
	s.rounds++
	for what, n := range r.Counts {
		s.counts[what] += n
		if strings.HasPrefix(what, "operation ") {
			s.operations += n
		}
	}
}

// String lists the counts.
func (s *tally) String() string {
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Fprintf(&out, "%8d %s\n", s.counts[what], what)
	}
	took := time.Since(s.began)
	fmt.Fprintf(&out, "%d rounds, %d operations in %s: %.0f a second", s.rounds, s.operations,
		took.Round(time.Millisecond), float64(s.operations)/took.Seconds())
	return out.String()
}

// report tells what is wrong with a run, and how to have it again. In the folder SIM_DIR it leaves the plan and the
// record.
func report(t *testing.T, r result) {
	t.Helper()
	for _, text := range r.Wrong {
		t.Error(text)
	}
	text, err := json.Marshal(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("SIM_DIR")
	if dir == "" {
		t.Logf("to have it again, write this into a file and say make sim SIM_PLAN=FILE:\n%s", text)
		return
	}
	file := filepath.Join(dir, fmt.Sprintf("sim-%d.json", r.Plan.Seed))
	record := strings.TrimSuffix(file, ".json") + ".log"
	for name, content := range map[string]string{file: string(text), record: r.Record} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Logf("what happened is in %s; to have it again: make sim SIM_PLAN=%s", record, file)
}
