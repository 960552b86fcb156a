package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// record has the last run of each program's tests.
type record struct {
	Programs []ran `json:"programs"`
}

// ran is the last run of a program's tests.
type ran struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Day     string   `json:"day"`
	Tests   []result `json:"tests"`
}

func readRecord(file string) (record, error) {
	var r record
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

func (r record) write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// add puts the results of a package in place of those that the record has of it. Programs that are no longer in the
// table go. The module is at root.
func (r *record) add(root, pkg string, at time.Time, results []result) error {
	var all []ran
	for _, p := range programs() {
		i := slices.IndexFunc(r.Programs, func(o ran) bool { return o.Name == p.name })
		if p.pkg != pkg {
			if i >= 0 {
				all = append(all, r.Programs[i])
			}
			continue
		}
		version, err := p.version(root)
		if err != nil {
			return err
		}
		one := ran{Name: p.name, Version: version, Day: at.UTC().Format(time.DateOnly)}
		for _, o := range results {
			if p.has(pkg, o.Test) {
				one.Tests = append(one.Tests, o)
			}
		}
		slices.SortFunc(one.Tests, func(a, b result) int { return strings.Compare(a.Test, b.Test) })
		all = append(all, one)
	}
	r.Programs = all
	return nil
}

// version returns what the go.mod of a program says, without the v.
func (p program) version(root string) (string, error) {
	var all []string
	for _, at := range p.pins {
		file := filepath.Join(root, at.dir, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		parsed, err := modfile.Parse(file, text, nil)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(parsed.Require, func(r *modfile.Require) bool { return r.Mod.Path == at.module })
		if i < 0 {
			return "", fmt.Errorf("%s does not require %s", file, at.module)
		}
		all = append(all, strings.TrimPrefix(parsed.Require[i].Mod.Version, "v"))
	}
	return strings.Join(all, ", "), nil
}
