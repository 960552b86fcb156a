package cli

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
)

func TestScreen(t *testing.T) {
	var b bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &screen[string]{
		w: &b, size: func() (int, int) { return 10, 6 }, now: func() time.Time { return now },
		table: table[string]{headers: true, columns: []column[string]{{name: "NAME", cell: func(s string) string { return s }}}},
		note:  func(all []string) string { return fmt.Sprintf("%d in all", len(all)) },
	}
	drawn := func(what string, want string) {
		t.Helper()
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		b.Reset()
	}
	all := func(items ...string) func() []string { return func() []string { return items } }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	do(s.refresh(all("a")))
	drawn("before the list is known", "")
	do(s.begin(all("a")()))
	drawn("the first time", "NAME\x1b[K\na\x1b[K\n1 in all\x1b[K\n\x1b[J")
	do(s.refresh(all("a")))
	drawn("without a change", "")
	do(s.change(watch.Added, "b"))
	drawn("before the next refresh", "")
	do(s.refresh(all("a", "b, too long for it")))
	drawn("over the old one", "\x1b[3A\rNAME\x1b[K\na\x1b[K\nb, too lon\x1b[K\n2 in all\x1b[K\n\x1b[J")
	do(s.change(watch.Added, "c"))
	do(s.refresh(all("a", "b", "c", "d", "e")))
	drawn("more than there is room for", "\x1b[4A\rNAME\x1b[K\na\x1b[K\nb\x1b[K\nc\x1b[K\n2 more; 5 \x1b[K\n\x1b[J")
	now = now.Add(drawAnyway)
	do(s.refresh(all()))
	drawn("empty, and later", "\x1b[5A\r0 in all\x1b[K\n\x1b[J")
}
