package printer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

func TestTableWithin(t *testing.T) {
	rows := []string{"kube-system/web-7d4b9c8f6d-x2x9v", "a"}
	wide := Table[string]{Headers: true, Columns: []Column[string]{
		{Name: "POD", Cell: func(s string) string { return s }},
		{Name: "AGE", Cell: func(string) string { return "3d" }},
	}}
	for width, want := range map[int]string{
		80: "POD                               AGE\nkube-system/web-7d4b9c8f6d-x2x9v  3d\na                                " +
			" 3d\n",
		26: "POD                    AGE\nkube-syste…8f6d-x2x9v  3d\na                      3d\n",
		9:  "POD           AGE\nkube-s…x2x9v  3d\na             3d\n",
	} {
		var b bytes.Buffer
		if err := wide.Within(width, rows).Write(&b, rows); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d: %s", width, diff)
		}
	}
}

func TestTable(t *testing.T) {
	columns := []Column[string]{
		{Name: "NAME", Cell: func(s string) string { return s }},
		{Name: "COLOUR", Cell: func(s string) string { return terminal.Terminal{Color: true}.Paint(terminal.Red, s) }},
		{Name: "EMPTY", Cell: func(string) string { return "" }},
	}
	var b bytes.Buffer
	if err := (Table[string]{Columns: columns, Headers: true}).Write(&b, []string{"a", "köln", "日本", "a  b"}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, c := range []string{"\x1b[31m", "\x1b[0m"} {
		got = strings.ReplaceAll(got, c, "")
	}
	want := "NAME  COLOUR  EMPTY\na     a       -\nköln  köln    -\n日本  日本    -\na  b  a  b    -\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := (Table[int]{Headers: true}).Write(&b, nil); err != nil || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

// TestTableInParts: one line of names, and columns that do not become narrower.
func TestTableInParts(t *testing.T) {
	text := func(s string) string { return s }
	parts := &GrowingTable[string]{Table: Table[string]{Headers: true, Columns: []Column[string]{
		{Name: "A", Least: 3, Cell: text}, {Name: "B", Cell: text}},
	}}
	parts.Begin()
	var b bytes.Buffer
	for _, part := range [][]string{{"1"}, {}, {"12345", "2"}, {"3"}} {
		if err := parts.Write(&b, part); err != nil {
			t.Fatal(err)
		}
	}
	want := "A    B\n1    1\n12345  12345\n2      2\n3      3\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
