package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// habit is something that made earlier code hard to read for people who had not written it.
type habit struct {
	name string
	// in returns what of a file shows the habit, with its position.
	in func(f *ast.File) []found
}

type found struct {
	at   token.Pos
	text string
}

var habits = []habit{
	{"a function's comment begins with its name and a verb that says what it does: returns, writes, reports whether", nouns},
	{"a name says which of its meanings a word has: settle, tell and look have had five and more", vague},
	{"an address family is an ipaddr.Family, and what has to be tried again is an error", booleans},
}

// TestHabits holds the code against the habits that it has got rid of. CONTRIBUTING.md has what to write in their
// place.
func TestHabits(t *testing.T) {
	root := filepath.Join("..", "..")
	files := token.NewFileSet()
	for _, dir := range []string{"api", "cmd", "hack", "pkg", "plugins"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			if err != nil || ast.IsGenerated(f) {
				return err
			}
			for _, h := range habits {
				for _, x := range h.in(f) {
					t.Errorf("%s: %q: %s", files.Position(x.at), x.text, h.name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHabitsAreFound has the habits found in a file that has all of them.
func TestHabitsAreFound(t *testing.T) {
	const text = `package p

// limit is the most that a page may have.
func limit() int { return 1 }

// refresh hears of changes.
func refresh(is4 bool) {}

func settle() (again bool) { return }

// Len returns a length. It is never negative.
func Len() (n int) { return }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"limit is", "refresh hears"}, {"settle"}, {"is4 bool", "again bool"}}
	for i, h := range habits {
		var got []string
		for _, x := range h.in(f) {
			got = append(got, x.text)
		}
		if !slices.Equal(got, want[i]) {
			t.Errorf("%s: found %q, want %q", h.name, got, want[i])
		}
	}
}

var noVerb = regexp.MustCompile(`^\w+ (is|are|has|have|was|were|tells|hears)\b`)

func nouns(f *ast.File) (all []found) {
	for fn := range functions(f) {
		if text := noVerb.FindString(fn.Doc.Text()); strings.HasPrefix(text, fn.Name.Name+" ") {
			all = append(all, found{fn.Pos(), text})
		}
	}
	return all
}

func vague(f *ast.File) (all []found) {
	for fn := range functions(f) {
		if name := fn.Name.Name; slices.Contains([]string{"settle", "tell", "look"}, name) {
			all = append(all, found{fn.Pos(), name})
		}
	}
	return all
}

func booleans(f *ast.File) (all []found) {
	for fn := range functions(f) {
		lists := slices.Clone(fn.Type.Params.List)
		if fn.Type.Results != nil {
			lists = append(lists, fn.Type.Results.List...)
		}
		for _, field := range lists {
			for _, name := range field.Names {
				typ, isName := field.Type.(*ast.Ident)
				if isName && typ.Name == "bool" && slices.Contains([]string{"is4", "is6", "v4", "v6", "again"}, name.Name) {
					all = append(all, found{name.Pos(), name.Name + " bool"})
				}
			}
		}
	}
	return all
}

// functions yields the functions and methods that a file declares.
func functions(f *ast.File) func(yield func(*ast.FuncDecl) bool) {
	return func(yield func(*ast.FuncDecl) bool) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && !yield(fn) {
				return
			}
		}
	}
}
