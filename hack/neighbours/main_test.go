package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/test/generated"
)

const top = "../.."

// TestPages: the pages have what the record of the last run says.
func TestPages(t *testing.T) {
	r, err := readRecord(filepath.Join(top, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Programs) != len(programs()) {
		t.Errorf("the record has %d programs, the table %d: run make test-neighbours", len(r.Programs), len(programs()))
	}
	for _, p := range pages() {
		t.Run(p.file, func(t *testing.T) {
			made := func(old string) (string, error) { return generated.Between(old, begin, end, p.body(r)) }
			generated.UpToDate(t, false, filepath.Join(top, p.file), "make test-neighbours", made)
		})
	}
}

// TestVersions: each program has a version, in the go.mod that the table names.
func TestVersions(t *testing.T) {
	for _, p := range programs() {
		if version, err := p.version(top); err != nil || version == "" && len(p.pins) > 0 {
			t.Errorf("%s: %q, %v", p.name, version, err)
		}
	}
}

// TestRead has a test within a test, one that is skipped in two ways, and one that fails.
func TestRead(t *testing.T) {
	var log strings.Builder
	got, err := read(strings.NewReader(strings.Join([]string{
		`{"Action":"start","Package":"x"}`,
		`{"Action":"run","Test":"TestCnitool"}`,
		`{"Action":"pass","Test":"TestCnitool"}`,
		`{"Action":"output","Test":"TestK/pods/[sig-node]_a","Output":"=== RUN\n"}`,
		`{"Action":"output","Test":"TestK/pods/[sig-node]_a","Output":"        a_test.go:63: no disk: sorry\n"}`,
		`{"Action":"skip","Test":"TestK/pods/[sig-node]_a"}`,
		`{"Action":"output","Test":"TestK/pods/b","Output":"    a_test.go:64: Wrong\n"}`,
		`{"Action":"fail","Test":"TestK/pods/b"}`,
		`{"Action":"fail","Test":"TestK/pods"}`,
		`{"Action":"fail","Test":"TestK"}`,
		`{"Action":"fail","Package":"x"}`,
	}, "\n")), &log)
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{"TestCnitool", "pass", ""}, {"TestK/pods/[sig-node] a", "skip", "no disk: sorry"},
		{"TestK/pods/b", "fail", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(log.String(), "Wrong") {
		t.Errorf("the failure is not shown: %q", log.String())
	}
	if _, err := read(strings.NewReader("panic"), io.Discard); err == nil {
		t.Error("what is no event is read")
	}
}

// TestRecord has the results of one package replaced, and those of the others kept.
func TestRecord(t *testing.T) {
	var r record
	day := time.Date(2026, 11, 27, 1, 0, 0, 0, time.UTC)
	for _, pkg := range packages() {
		if err := r.add(top, pkg, day, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Programs) != len(programs()) {
		t.Errorf("%d programs", len(r.Programs))
	}
	err := r.add(top, "./test/neighbours", day.AddDate(0, 0, 1), []result{
		{"TestK9s", "pass", ""}, {"TestExplained", "skip", "no disk"}, {"TestOther", "pass", ""},
	})
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for _, p := range r.Programs {
		days = append(days, p.Day)
	}
	if days[0] != "2026-11-27" || !slices.Contains(days, "2026-11-28") {
		t.Errorf("the days are %v", days)
	}
	for _, text := range []string{english(r), chinese(r)} {
		for _, want := range []string{"1 | 0 | 0 | 2026-11-28", "0 | 1 | 0 | 2026-11-28", "0 | 0 | 0 | 2026-11-27"} {
			if !strings.Contains(text, "| "+want+" |") {
				t.Errorf("the page does not have %q:\n%s", want, text)
			}
		}
	}
}
