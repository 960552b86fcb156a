package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachGuardHasATest compares the guards that the code names with those that TestGuards and TestMutations break.
func TestEachGuardHasATest(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, dir := range []string{"pkg", "cmd", "plugins"} {
		err := filepath.WalkDir(filepath.Join(root(t), dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				err = guardsOf(path, named)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	broken := map[string]bool{}
	for name := range guards() {
		broken[name] = true
	}
	for name := range coarse() {
		broken[name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(broken))); diff != "" {
		t.Errorf("guards of the code (-) and those that tests break (+): %s", diff)
	}
}

// guardsOf adds the guards that a file names.
func guardsOf(path string, named map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Broken" {
			return true
		}
		for _, arg := range call.Args {
			text, ok := arg.(*ast.BasicLit)
			if !ok {
				continue
			}
			name, wrong := strconv.Unquote(text.Value)
			if wrong != nil {
				err = wrong
			}
			named[name] = true
		}
		return true
	})
	return err
}
