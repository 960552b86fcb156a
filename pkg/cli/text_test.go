package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func TestCalledName(t *testing.T) {
	for arg0, want := range map[string]string{
		"bcsnetctl": "bcsnetctl", "bin/bcsnetctl.exe": "bcsnetctl", "bn": "bn",
		"kubectl-bcsnet": "kubectl bcsnet", "bin/kubectl-bcs_net-x": "kubectl bcs-net x",
	} {
		if got := calledName(arg0); got != want {
			t.Errorf("%s: got %q, want %q", arg0, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"blue", "green", "10.0.0.11", "10.0.0.13", "a"}
	for word, want := range map[string]string{
		"bleu": "blue", "gren": "green", "10.0.0.31": "10.0.0.11", "aa": "a", "purple-orange": "", "": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	word := rapid.StringMatching(`[ab.]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a)-len(b), len(b)-len(a)) {
			t.Fatalf("distance of %q and %q is %d", a, b, d)
		}
	})
}

func TestUsed(t *testing.T) {
	plain, ascii := terminal{}, terminal{tty: true}
	utf8, color := terminal{tty: true, utf8: true}, terminal{tty: true, utf8: true, color: true}
	for name, test := range map[string]struct {
		term        terminal
		part, total int64
		want        string
	}{
		"a file has no bar":       {plain, 3, 10, "30%"},
		"ASCII":                   {ascii, 3, 10, "###------- 30%"},
		"UTF-8":                   {utf8, 3, 10, "███░░░░░░░ 30%"},
		"colour":                  {color, 3, 10, "\x1b[32m███\x1b[0m░░░░░░░ 30%"},
		"colour nearly full":      {color, 8, 10, "\x1b[33m████████\x1b[0m░░ 80%"},
		"colour full":             {color, 10, 10, "\x1b[31m██████████\x1b[0m 100%"},
		"empty":                   {utf8, 0, 10, "░░░░░░░░░░ 0%"},
		"a little is not nothing": {utf8, 1, 65536, "█░░░░░░░░░ <1%"},
		"nearly all is not all":   {utf8, 65535, 65536, "█████████░ 99%"},
		"no addresses":            {utf8, 0, 0, ""},
		"more than can be":        {plain, 12, 10, "120%"},
		"as many as there can be": {plain, 1, math.MaxInt64, "<1%"},
	} {
		if got := test.term.used(test.part, test.total); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestTerminal(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LC_CTYPE": "C.utf8"}, true},
	} {
		if got := isUTF8(env(test.env)); got != test.want {
			t.Errorf("%v: UTF-8 is %v", test.env, got)
		}
	}
	if got := terminalOf(&bytes.Buffer{}, env(map[string]string{})); got != (terminal{}) {
		t.Errorf("a buffer is a terminal: %+v", got)
	}
}

func TestTable(t *testing.T) {
	columns := []column[string]{
		{name: "NAME", cell: func(s string) string { return s }},
		{name: "COLOUR", cell: func(s string) string { return terminal{color: true}.paint(red, s) }},
		{name: "EMPTY", cell: func(string) string { return "" }},
	}
	var b bytes.Buffer
	if err := (table[string]{columns: columns, headers: true}).write(&b, []string{"a", "köln", "日本", "a  b"}); err != nil {
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
	if err := (table[int]{headers: true}).write(&b, nil); err != nil || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

func TestExitCode(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"done":             {t.Context(), nil, 0},
		"failed":           {t.Context(), errors.New("no"), 1},
		"refused":          {t.Context(), refuse(reasonPoolOverlap, "no"), 1},
		"usage":            {t.Context(), usagef("no"), 2},
		"usage inside":     {t.Context(), fmt.Errorf("pool: %w", usagef("no")), 2},
		"one of several":   {t.Context(), several{errors.New("no"), &failure{code: exitTimeout}}, 124},
		"deadline":         {t.Context(), fmt.Errorf("no: %w", context.DeadlineExceeded), 124},
		"interrupted":      {interrupted, context.Canceled, 130},
		"done despite all": {interrupted, nil, 0},
	} {
		if got := exitCode(test.ctx, test.err); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestState(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &session{now: func() time.Time { return now }}
	pool := func(change func(*v1.BCSNetPool)) *v1.BCSNetPool {
		p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		p.Status.ObservedGeneration, p.Status.Status = 2, v1.PoolNormal
		change(p)
		return p
	}
	set := func(kind string, status metav1.ConditionStatus, reason string) func(*v1.BCSNetPool) {
		return func(p *v1.BCSNetPool) {
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
		}
	}
	for _, test := range []struct {
		change    func(*v1.BCSNetPool)
		want      string
		attention bool
	}{
		{func(*v1.BCSNetPool) {}, "Ready", false},
		{func(p *v1.BCSNetPool) { p.DeletionTimestamp = &metav1.Time{Time: now} }, "Terminating", true},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration = 0 }, "Unseen", true},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration, p.CreationTimestamp = 0, metav1.NewTime(now) }, "Unseen", false},
		{func(p *v1.BCSNetPool) { p.Status.ObservedGeneration = 1 }, "Updating", false},
		{func(p *v1.BCSNetPool) { p.Status.Status = v1.PoolInitializing }, "Initializing", false},
		{set(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec), "InvalidSpec", true},
		{set(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCordoned), "Cordoned", false},
		{set(v1.ConditionExhausted, metav1.ConditionTrue, v1.ReasonNoAddressesFree), "Exhausted", true},
		{set(v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost), "Overlap", true},
		{set(v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire), "Draining", false},
	} {
		if word, attention := s.state(pool(test.change)); word != test.want || attention != test.attention {
			t.Errorf("got %s (attention %v), want %s (%v)", word, attention, test.want, test.attention)
		}
	}
}

// TestTableInParts: one line of names, and columns that do not become narrower.
func TestTableInParts(t *testing.T) {
	text := func(s string) string { return s }
	parts := &growingTable[string]{table: table[string]{headers: true, columns: []column[string]{
		{name: "A", least: 3, cell: text}, {name: "B", cell: text}},
	}}
	parts.begin()
	var b bytes.Buffer
	for _, part := range [][]string{{"1"}, {}, {"12345", "2"}, {"3"}} {
		if err := parts.write(&b, part); err != nil {
			t.Fatal(err)
		}
	}
	want := "A    B\n1    1\n12345  12345\n2      2\n3      3\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
