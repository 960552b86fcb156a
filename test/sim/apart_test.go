package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// TestRound plays the plan SIM_ROUND and writes the result into the file SIM_RESULT: it is run by others, as a process
// of its own.
func TestRound(t *testing.T) {
	text, file := os.Getenv("SIM_ROUND"), os.Getenv("SIM_RESULT")
	if text == "" {
		t.Skip("TestSim and TestReplay run it")
	}
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(play(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
}

// playApart plays a plan in a process of its own, on one processor: goroutines take turns there in an order that comes
// again more often than on several, and nothing is left of the rounds before. It is false when the context ended first.
func playApart(ctx context.Context, t *testing.T, p plan) (r result, ok bool) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Error(err)
		return r, false
	}
	file := filepath.Join(t.TempDir(), "result.json")
	round := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestRound$")
	round.Env = append(os.Environ(), "SIM_ROUND="+string(text), "SIM_RESULT="+file, "GOMAXPROCS=1")
	out, err := round.CombinedOutput()
	if ctx.Err() != nil {
		return r, false
	}
	if err == nil {
		out, err = os.ReadFile(file)
	}
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil { // a panic, or a bubble in which all wait for ever
		r = result{Plan: p, Wrong: []string{fmt.Sprintf("the round ended with: %v", err)}, Record: string(out)}
	}
	return r, true
}

// playAll plays plans, as many at a time as there are processors, until there is none left or enough says so of a
// result.
func playAll(t *testing.T, next func() (plan, bool), enough func(result) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var playing sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		playing.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				p, more := next()
				mu.Unlock()
				if !more {
					return
				}
				r, ok := playApart(ctx, t, p)
				mu.Lock()
				if ok && ctx.Err() == nil && enough(r) {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	playing.Wait()
}
