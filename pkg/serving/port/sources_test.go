package port

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServersAreMadeHere holds the sources of what is shipped against making an HTTP server without these bounds.
func TestServersAreMadeHere(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	files := token.NewFileSet()
	for _, dir := range []string{"cmd", "pkg", "plugins"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(filepath.ToSlash(path), "pkg/serving/port/") {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			for _, n := range servers(f) {
				t.Errorf("%s: make the server by pkg/serving/port, which bounds it", files.Position(n.Pos()))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// servers returns where a file makes a server of net/http, or serves by one that others have.
func servers(f *ast.File) (found []ast.Node) {
	pointers := map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if star, ok := n.(*ast.StarExpr); ok {
			pointers[star.X] = true
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok || pointers[s] {
			return true
		}
		made := []string{"Server", "Serve", "ServeTLS", "ListenAndServe", "ListenAndServeTLS"}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "http" && slices.Contains(made, s.Sel.Name) ||
			s.Sel.Name == "ListenAndServe" || s.Sel.Name == "ListenAndServeTLS" {
			found = append(found, s)
		}
		return true
	})
	return found
}

// TestServersAreFound has each way of making a server found.
func TestServersAreFound(t *testing.T) {
	const text = `package p

var a = http.Server{}
var b = &http.Server{Handler: nil}
var c = new(http.Server)
var d http.Server

func e(s *http.Server) {
	http.Serve(nil, nil)
	http.ListenAndServe("", nil)
	s.ListenAndServe()
	s.Serve(nil)
}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(servers(f)); n != 7 {
		t.Errorf("%d of 7 are found", n)
	}
}
