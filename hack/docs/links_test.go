package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// mdPage holds the links and the headings of a Markdown file.
type mdPage struct {
	anchors map[string]bool
	links   []string
}

// anchorsOf gives headings the anchors that GitHub gives them: letters, of any script, and digits in small, blanks as
// -.
type anchorsOf struct{ mdPage }

func (a anchorsOf) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	id := slug
	for n := 1; a.anchors[id]; n++ {
		id = fmt.Sprint(slug, "-", n)
	}
	a.anchors[id] = true
	return []byte(id)
}

func (a anchorsOf) Put(value []byte) { a.anchors[string(value)] = true }

func readPage(source []byte) mdPage {
	p := mdPage{anchors: map[string]bool{}}
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchorsOf{p}))))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				p.links = append(p.links, string(n.Destination))
			case *ast.Image:
				p.links = append(p.links, string(n.Destination))
			}
		}
		return ast.WalkContinue, nil // no error above
	})
	return p
}

// broken are the links of the pages under root that lead nowhere inside it. Addresses of other sites are not looked at.
func broken(root string, files []string) (wrong []string, err error) {
	pages := map[string]mdPage{}
	read := func(file string) (mdPage, error) {
		if p, ok := pages[file]; ok {
			return p, nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return mdPage{}, err
		}
		pages[file] = readPage(source)
		return pages[file], nil
	}
	for _, file := range files {
		p, err := read(file)
		if err != nil {
			return nil, err
		}
		for _, link := range p.links {
			name, _ := filepath.Rel(root, file) // both are absolute
			u, err := url.Parse(link)
			switch {
			case err != nil:
				wrong = append(wrong, fmt.Sprintf("%s: %s: %v", name, link, err))
				continue
			case u.Scheme != "" || u.Host != "":
				continue
			}
			target := file
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
			}
			if _, err := os.Stat(target); err != nil || !filepath.IsLocal(mustRel(root, target)) {
				wrong = append(wrong, fmt.Sprintf("%s: %s: there is no such file", name, link))
				continue
			}
			if u.Fragment == "" || filepath.Ext(target) != ".md" {
				continue
			}
			if to, err := read(target); err != nil || !to.anchors[u.Fragment] {
				wrong = append(wrong, fmt.Sprintf("%s: %s: there is no such heading", name, link))
			}
		}
	}
	return wrong, nil
}

func mustRel(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		panic(err) // both are absolute
	}
	return rel
}

// TestLinks: every link of the documentation to a file or a heading of it leads there.
func TestLinks(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{
		filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md"),
		filepath.Join(root, "test", "README.md"),
	}
	for _, dir := range []string{"docs", "examples"} {
		err = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wrong, err := broken(root, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	t.Logf("%d pages", len(files))
}

// TestBrokenLinks: what leads nowhere is found, and what leads somewhere is not.
func TestBrokenLinks(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"a.md": "# One `two`, three\n\n# 地址 与 池\n\n# Twice\n\n# Twice\n\n[x](b.md) [x](#one-two-three) [x](#twice-1) [地](#地址-与-池) [x](https://a.b/c#d)\n" +
			"[x](none.md) [x](#four) [x](b.md#five) ![x](none.png) [x](../out.md) [ref]\n\n| a |\n|---|\n| [x](none-in-table.md) |\n\n```\n[x](in-code.md)\n```\n\n[ref]: none-by-reference.md\n",
		"b.md": "# Six\n\n[x](a.md#one-two-three) [x](.)\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrong, err := broken(root, []string{filepath.Join(root, "a.md"), filepath.Join(root, "b.md")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.md: none.md: there is no such file", "a.md: #four: there is no such heading", "a.md: b.md#five: there is no such heading",
		"a.md: none.png: there is no such file", "a.md: ../out.md: there is no such file", "a.md: none-by-reference.md: there is no such file",
		"a.md: none-in-table.md: there is no such file",
	}
	if !slices.Equal(wrong, want) {
		t.Errorf("got %q, want %q", wrong, want)
	}
}
