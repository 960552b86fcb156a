package main

import (
	"bytes"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// wall bounds what a type reaches. A type whose parts are embedded has all their methods: each part may call
// everything, and x.foo() does not say where foo is. Named fields keep it small.
type wall struct {
	path, name string
	// methods bounds the methods of a pointer to the type, including those of embedded parts.
	methods int
	// depth bounds how deep parts are embedded in each other.
	depth int
}

var walls = []wall{
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Allocator", 0, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "engine", 8, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Adder", 30, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Releaser", 8, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Repairer", 14, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Stocker", 14, 0},
	{"github.com/bcsnet/bcsnet/pkg/allocator", "Reporter", 6, 0},
	{"github.com/bcsnet/bcsnet/pkg/httpapi", "Service", 52, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/index", "Index", 16, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/index", "Leases", 27, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/index", "Feed", 19, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/index", "Pools", 64, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/memory", "State", 59, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/memory", "Catalogue", 44, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/pick", "Picker", 50, 0},
	{"github.com/bcsnet/bcsnet/pkg/ipam/ledger", "Leases", 8, 0},
}

// TestWalls keeps the types that are in the middle of everything from growing back.
func TestWalls(t *testing.T) {
	for _, w := range walls {
		all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps |
			packages.NeedExportFile | packages.NeedTypes}, w.path)
		if err != nil || len(all) != 1 || len(all[0].Errors) > 0 {
			t.Fatalf("%s: %v %v", w.path, err, all[0].Errors)
		}
		of := all[0].Types.Scope().Lookup(w.name)
		if of == nil {
			t.Errorf("%s has no type %s", w.path, w.name)
			continue
		}
		methods, depth := types.NewMethodSet(types.NewPointer(of.Type())).Len(), embedded(of.Type())
		if methods > w.methods || depth > w.depth {
			t.Errorf("%s.%s reaches %d methods, and its parts are embedded %d deep: at most %d and %d are allowed", w.path,
				w.name, methods, depth, w.methods, w.depth)
		}
		t.Logf("%s.%s: %d methods, embedded %d deep", w.path, w.name, methods, depth)
	}
}

// TestSizes keeps the packages below pkg/ipam small: each has at most 40 files and 3,000 lines, tests apart.
func TestSizes(t *testing.T) {
	const most, mostLines = 40, 3000
	files, lines := map[string]int{}, map[string]int{}
	root := filepath.Join("..", "..", "pkg", "ipam")
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.Dir(path)]++
		lines[filepath.Dir(path)] += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil || files[root] == 0 {
		t.Fatalf("%d files in %s: %v", files[root], root, err)
	}
	for dir, n := range files {
		if n > most || lines[dir] > mostLines {
			t.Errorf("%s has %d files and %d lines: at most %d and %d are allowed", dir, n, lines[dir], most, mostLines)
		}
	}
}

// embedded returns how deep structs are embedded in a type; 0 if it embeds none.
func embedded(t types.Type) (deepest int) {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return 0
	}
	for f := range s.Fields() {
		if f.Embedded() {
			deepest = max(deepest, 1+embedded(f.Type()))
		}
	}
	return deepest
}

// TestEmbedded counts how deep structs are embedded in each other, through pointers and without fields that have names.
func TestEmbedded(t *testing.T) {
	field := func(of types.Type, embedded bool) *types.Var { return types.NewField(0, nil, "x", of, embedded) }
	strukt := func(fields ...*types.Var) types.Type { return types.NewStruct(fields, nil) }
	flat := strukt(field(types.Typ[types.Int], false))
	one := strukt(field(types.NewPointer(flat), true))
	two := strukt(field(one, true))
	for want, of := range []types.Type{flat, one, two} {
		if got := embedded(of); got != want {
			t.Errorf("%s: %d, want %d", of, got, want)
		}
	}
	if got := embedded(strukt(field(two, false))); got != 0 {
		t.Errorf("a field with a name: %d, want 0", got)
	}
}
