package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/generated"
)

var updateRooms = flag.Bool("update", false, "rewrite the map of rooms in CONTRIBUTING.md and the README of the chart")

const (
	roomsBegin = "<!-- the map of rooms: written by go generate ./hack/docs -->\n"
	roomsEnd   = "<!-- end of the map of rooms -->"
)

// TestRooms writes the map of rooms in CONTRIBUTING.md: each package, with the first sentence of its comment up to a
// colon. A package without a comment is an error. Those below test are in test/README.md.
//
//go:generate go test -run TestRooms -update .
func TestRooms(t *testing.T) {
	root := filepath.Join("..", "..")
	generated.UpToDate(t, *updateRooms, filepath.Join(root, "CONTRIBUTING.md"), "go generate ./hack/docs",
		func(old string) (string, error) {
			rooms, err := rooms(root)
			if err != nil {
				return "", err
			}
			return generated.Between(old, roomsBegin, roomsEnd, "\n| room | what it does |\n| --- | --- |\n"+rooms+"\n")
		})
}

// rooms returns a row for each package under a directory, except those in test/README.md.
func rooms(root string) (string, error) {
	var rows strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		}
		text, is, err := packageComment(path)
		if err != nil || !is {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if text == "" {
			return fmt.Errorf("package %s has no comment", name)
		}
		if name = filepath.ToSlash(name); !strings.HasPrefix(name, "test/") {
			fmt.Fprintf(&rows, "| `%s` | %s |\n", name, inTable(text))
		}
		return nil
	})
	return rows.String(), err
}

// packageComment returns the first sentence of the comment of the package in a directory. Tests count, too: a package
// may have nothing else. is reports whether there is a package at all.
func packageComment(dir string) (text string, is bool, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", false, err
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", true, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", true, err
		}
		if comment := commentOf(parsed); comment != "" {
			return comment, true, nil
		}
	}
	return "", len(files) > 0, nil
}

func commentOf(file *ast.File) string { return new(doc.Package).Synopsis(file.Doc.Text()) }

// inTable returns the part of a sentence before its colon, without its subject, as the row begins with that.
func inTable(sentence string) string {
	if rest, ok := strings.CutPrefix(sentence, "Package "); ok {
		_, sentence, _ = strings.Cut(rest, " ")
	}
	sentence, _, _ = strings.Cut(sentence, ": ")
	return strings.ReplaceAll(strings.TrimRight(sentence, ".:"), "|", `\|`)
}
