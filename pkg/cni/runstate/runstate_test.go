package runstate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestState(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "run"))
	if s, err := d.Read(); s != (State{}) || err != nil {
		t.Errorf("none: %+v, %v", s, err)
	}
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	want := State{AnsweredAt: at, Replica: "http://a", Receipt: "r", PoolsFull: &Full{At: at, Message: "m"}}
	write := func() error { return d.Update(func(s *State) { *s = want }) }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	got, err := d.Read()
	want.Boot = got.Boot
	if diff := cmp.Diff(want, got); err != nil || diff != "" || got.Boot == "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	path := filepath.Join(string(d), stateFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"of another boot": strings.Replace(string(text), `"boot":"`, `"boot":"x`, 1),
		"cut off":         string(text[:20]),
		"empty":           "",
		"too large":       string(text) + strings.Repeat(" ", maxState),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := d.Read(); s != (State{}) || err != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if err := write(); err != nil {
		t.Errorf("over a damaged one: %v", err)
	}
	if files, err := os.ReadDir(string(d)); err != nil || len(files) != 1 {
		t.Errorf("the directory has %v, %v", files, err)
	}
	file := Dir(path)
	if err := file.Update(func(*State) {}); err == nil {
		t.Error("a file in the place of the directory: no error")
	}
	if _, err := file.Read(); err == nil {
		t.Error("a file in the place of the directory was read")
	}
}

// TestUnchanged has changes that leave the state as it is: nothing is written.
func TestUnchanged(t *testing.T) {
	d := Dir(t.TempDir())
	if err := d.Update(func(s *State) { s.Replica = "http://a" }); err != nil {
		t.Fatal(err)
	}
	file := func() os.FileInfo {
		info, err := os.Stat(filepath.Join(string(d), stateFile))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := file()
	if err := d.Update(func(s *State) { s.Replica = "http://a" }); err != nil || !os.SameFile(before, file()) {
		t.Errorf("written again: %v", err)
	}
	if err := d.Update(func(s *State) { s.Replica = "http://b" }); err != nil || os.SameFile(before, file()) {
		t.Errorf("not written: %v", err)
	}
}

// lines returns the calls in a file.
func lines(t *testing.T, path string) (all []Call) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, c)
	}
	return all
}

// TestLog has several writers at once, and enough lines for a new file: each line is whole, and none is written twice.
func TestLog(t *testing.T) {
	d := Dir(t.TempDir())
	const writers, each = 8, 500
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				c := Call{Command: "ADD", Outcome: OK, RequestID: fmt.Sprintf("%d-%d", w, i), Error: strings.Repeat("x", 500)}
				if err := d.Log(c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	seen := map[string]int{}
	for _, name := range []string{callsFile, olderFile} {
		path := filepath.Join(string(d), name)
		for _, c := range lines(t, path) {
			seen[c.RequestID]++
		}
		if info, err := os.Stat(path); err != nil || info.Size() > maxCalls+maxLine*writers {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d of %d lines are there", len(seen), writers*each)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("line %s is there %d times", id, n)
		}
	}
}

// TestLongLine has a call with more to say than a line may have.
func TestLongLine(t *testing.T) {
	d := Dir(t.TempDir())
	long := strings.Repeat("x", maxLine)
	if err := d.Log(Call{Command: "ADD", RequestID: "r", Error: long, Notes: []string{long, long}, Pod: long, Addrs: []string{long}}); err != nil {
		t.Fatal(err)
	}
	got := lines(t, filepath.Join(string(d), callsFile))
	if len(got) != 1 || got[0].RequestID != "r" || len(got[0].Error) > 600 || len(got[0].Pod) > 600 || len(got[0].Notes) != 1 {
		t.Errorf("%+v", got)
	}
}
