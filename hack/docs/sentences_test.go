package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestSentences: the pages about the CNI plugins have the sentences that a pod's event can show, and no others, in
// English and Chinese.
func TestSentences(t *testing.T) {
	for dir, page := range map[string]string{"pkg/cni/ipam": "cni.md", "pkg/cni/announce": "cni-link.md"} {
		t.Run(dir, func(t *testing.T) {
			code, err := sentences(filepath.Join("../..", dir))
			if err != nil {
				t.Fatal(err)
			}
			if len(code) < 10 {
				t.Fatalf("only %d sentences were found: %v", len(code), code)
			}
			var english []string
			for _, name := range []string{page, "zh/" + page} {
				spans, err := documented(filepath.Join("../../docs", name), dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, problem := range compareSentences(code, spans) {
					t.Errorf("docs/%s: %s", name, problem)
				}
				if english == nil {
					english = spans
				}
				if !slices.Equal(english, spans) {
					t.Errorf("docs/%s has %q, and docs/%s has %q", page, english, name, spans)
				}
			}
		})
	}
}

// TestSentencesAreCompared has what the comparison is to find.
func TestSentencesAreCompared(t *testing.T) {
	code := []string{"%s has no address of %s", "it is wrong: mend %d of it"}
	for name, c := range map[string]struct {
		spans []string
		wrong int
	}{
		"all":              {[]string{"a has no address of eth0; x", "it is wrong: mend 3 of it"}, 0},
		"cut":              {[]string{"a has no address of eth0", "it is wrong"}, 0},
		"the allocator's":  {[]string{"a has no address of eth0", "it is wrong", "x (PoolExhausted)"}, 0},
		"no such reason":   {[]string{"a has no address of eth0", "it is wrong", "x (PoolEmpty)"}, 1},
		"one is missing":   {[]string{"it is wrong"}, 1},
		"one is of no use": {[]string{"a has no address of eth0", "it is wrong", "it is right"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compareSentences(code, c.spans); len(got) != c.wrong {
				t.Errorf("%q, want %d", got, c.wrong)
			}
		})
	}
}

// compareSentences returns which sentences of the code are not documented, and which documented ones the code has not.
// What follows a semicolon is beyond the sentence, and a page may end a sentence at a colon of it.
func compareSentences(code, spans []string) (problems []string) {
	used := map[string]bool{}
	for _, format := range code {
		found := false
		for _, span := range spans {
			sentence, _, _ := strings.Cut(span, ";")
			if says(format, sentence) {
				found, used[span] = true, true
			}
		}
		if !found {
			problems = append(problems, fmt.Sprintf("%q is missing", format))
		}
	}
	for _, span := range spans {
		if !used[span] && !refusal(span) {
			problems = append(problems, fmt.Sprintf("%q is in no code", span))
		}
	}
	return problems
}

// refusal reports whether a sentence ends in a reason of the allocator.
func refusal(span string) bool {
	return slices.ContainsFunc(ipam.ReasonTable(), func(r ipam.ReasonInfo) bool {
		return strings.HasSuffix(span, "("+string(r.Reason)+")")
	})
}

// says reports whether a format can make a sentence, which may end at a colon of the format.
func says(format, sentence string) bool {
	parts := strings.Split(format, ": ")
	for i := range parts {
		pattern := regexp.QuoteMeta(strings.Join(parts[:i+1], ": "))
		pattern = regexp.MustCompile(`%(\\\.[0-9]+)?[a-z]`).ReplaceAllString(pattern, ".+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(sentence) {
			return true
		}
	}
	return false
}

// documented returns the code spans at the beginning of the rows of a page's table of sentences.
func documented(page, dir string) (spans []string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(text), "<!-- sentences of "+dir+":")
	table, _, ok2 := strings.Cut(rest, "<!-- end of sentences -->")
	if !ok || !ok2 {
		return nil, errors.New(page + " has no table of the sentences of " + dir)
	}
	for line := range strings.Lines(table) {
		if row, is := strings.CutPrefix(line, "| `"); is {
			span, _, _ := strings.Cut(row, "`")
			spans = append(spans, span)
		}
	}
	return spans, nil
}

// sentences returns the formats of the errors that the code of a directory makes for CNI.
func sentences(dir string) (all []string, err error) {
	// Which argument of a function is the sentence, and what the function puts behind it.
	makers := map[string]struct {
		argument int
		behind   string
	}{
		"cniError": {2, ""}, "ioError": {0, ""}, "configError": {0, " is wrong"}, "invalid": {0, ""}, "NewError": {1, ""},
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fs.ErrNotExist
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, is := n.(*ast.FuncDecl); is {
				if _, is := makers[f.Name.Name]; is {
					return false // their own argument
				}
			}
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if m, ok := makers[called(call)]; ok && len(call.Args) > m.argument {
				// What has no words is another error's sentence.
				if s := format(call.Args[m.argument]) + m.behind; strings.Contains(s, " ") && s != "%s (%s)" {
					all = append(all, s)
				}
			}
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// called returns the name of the function that is called, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// format returns an expression as a format: what is known at run time alone is a verb.
func format(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return format(e.X) + format(e.Y)
	case *ast.CallExpr:
		if called(e) == "Sprintf" {
			return format(e.Args[0])
		}
	}
	return "%s"
}
