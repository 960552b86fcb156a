package follow

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
)

func TestScreen(t *testing.T) {
	var b bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &screen[string]{
		w: &b, size: func() (int, int) { return 10, 6 }, now: func() time.Time { return now },
		table: printer.Table[string]{
			Headers: true, Columns: []printer.Column[string]{{Name: "NAME", Cell: func(s string) string { return s }}},
		},
		note: func(all []string) string { return fmt.Sprintf("%d in all", len(all)) },
	}
	drawn := func(what string, want string) {
		t.Helper()
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		b.Reset()
	}
	list := &Watched[string]{View: s, Compare: strings.Compare, Items: map[string]string{}}
	// all are these items; what is new has changed since the list began.
	all := func(items ...string) *Watched[string] {
		t.Helper()
		if err := list.Become(items, func(s string) string { return s }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	do(s.Refresh(list))
	drawn("before the list is known", "")
	all("b")
	drawn("the first time", "NAME\x1b[K\nb\x1b[K\n1 in all\x1b[K\n\x1b[J")
	do(s.Refresh(list))
	drawn("without a change", "")
	all("a, too long for it", "b")
	drawn("before the next refresh", "")
	do(s.Refresh(list))
	drawn("over the old one, in order", "\x1b[3A\rNAME\x1b[K\na, too…or \x1b[K\nb\x1b[K\n2 in all\x1b[K\n\x1b[J")
	do(s.Refresh(all("a", "b", "c")))
	do(s.Refresh(all("a", "b", "c", "z", "y")))
	b.Reset()
	s.changed = true
	do(s.Refresh(list))
	drawn("more than there is room for: the latest",
		"\x1b[5A\rNAME\x1b[K\ny\x1b[K\nz\x1b[K\nc\x1b[K\n2 more; 5 \x1b[K\n\x1b[J")
	list.Ranked, s.changed = true, true
	do(s.Refresh(list))
	drawn("a ranking stays one", "\x1b[5A\rNAME\x1b[K\na\x1b[K\nb\x1b[K\nc\x1b[K\n2 more; 5 \x1b[K\n\x1b[J")
	now = now.Add(drawAnyway)
	do(s.Refresh(all()))
	drawn("empty, and later", "\x1b[5A\r0 in all\x1b[K\n\x1b[J")
}
