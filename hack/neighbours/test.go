package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// limit bounds the tests of a package. make test-neighbours has a bound of its own for all of them.
const limit = "40m"

// result has the outcome of one test that has no subtests.
type result struct {
	Test   string `json:"test"`
	Result string `json:"result"` // pass, skip or fail
	Why    string `json:"why,omitempty"`
}

// test runs the tests of a package in full. It fails where one of them does.
func test(ctx context.Context, pkg string) ([]result, error) {
	fmt.Fprintln(os.Stderr, "neighbours:", pkg)
	// The flags of hack/test.sh, so that what both compile is compiled once.
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-trimpath", "-vet=off", "-ldflags=-s -w", "-count", "1",
		"-timeout", limit, "-run", "^("+strings.Join(roots(pkg), "|")+")$", pkg)
	cmd.Env, cmd.Stderr = append(os.Environ(), "NEIGHBOURS_LONG=1"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	results, err := read(out, os.Stderr)
	if ended := cmd.Wait(); ended != nil {
		err = ended
	}
	if err == nil && len(results) == 0 {
		err = fmt.Errorf("no test of %v has run", roots(pkg))
	}
	if err != nil {
		return results, fmt.Errorf("go test %s: %w", pkg, err)
	}
	return results, nil
}

// event is a line of go test -json.
type event struct {
	Action string `json:"Action"`
	Test   string `json:"Test"`
	Output string `json:"Output"`
}

// said matches the lines that t.Skip and others print: a place in a file, and the words.
var said = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)

// read reads what go test -json prints. What concerns failures is copied to log.
func read(from io.Reader, log io.Writer) (results []result, err error) {
	printed := map[string][]string{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lines.Text())
		}
		switch e.Action {
		case "output", "build-output":
			printed[e.Test] = append(printed[e.Test], e.Output)
		case "fail", "build-fail":
			fmt.Fprint(log, strings.Join(printed[e.Test], ""))
		}
		if e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			results = append(results, result{Test: e.Test, Result: e.Action})
		}
	}
	all := results
	results = slices.DeleteFunc(slices.Clone(all), func(r result) bool {
		return slices.ContainsFunc(all, func(o result) bool { return strings.HasPrefix(o.Test, r.Test+"/") })
	})
	for i := range results {
		r := &results[i]
		if r.Result == "skip" {
			for _, line := range printed[r.Test] {
				if words := said.FindStringSubmatch(line); words != nil {
					r.Why = words[1]
				}
			}
		}
		root, below, ok := strings.Cut(r.Test, "/")
		if ok {
			r.Test = root + "/" + strings.ReplaceAll(below, "_", " ")
		}
	}
	return results, lines.Err()
}
